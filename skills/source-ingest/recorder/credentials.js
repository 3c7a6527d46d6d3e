'use strict';
/** Credentials: made-up values, and what a credential adds to a request. */

const fs = require('fs');
const path = require('path');

const DECLARED = /oauth|aws|google.*service/i;
const HOST = /url|domain|host|server|endpoint|site/i;

/** Find the credentials' files of the package by the names in package.json. */
function find(root) {
	const found = {};
	let listed = [];
	try { listed = JSON.parse(fs.readFileSync(path.join(root, 'package.json'), 'utf8')).n8n.credentials || []; } catch { /* no package.json, or none in it */ }
	for (const file of listed) found[path.basename(file).split('.')[0].toLowerCase()] = path.join(root, sourceOf(root, file));
	return found;
}

/** Return the TypeScript source of a built file that is not there. */
function sourceOf(root, file) {
	const source = file.replace(/\.js$/, '.ts');
	const inner = source.split('/').slice(1).join('/');
	return [file, source, inner, `src/${inner}`].find((each) => fs.existsSync(path.join(root, each))) || file;
}

class Credentials {
	constructor(root) {
		this.files = find(root);
		this.types = {};
		this.made = {};
	}

	/** Return the description of a credential, or undefined if the package has none. */
	type(name) {
		if (!(name in this.types)) {
			this.types[name] = undefined;
			try {
				const exported = require(this.files[name.toLowerCase()]);
				this.types[name] = Object.values(exported).filter((each) => typeof each === 'function').map((each) => new each())[0];
			} catch { /* unknown, or it needs a missing module */ }
		}
		return this.types[name];
	}

	/** Return made-up data: each field is `c_FIELD`, an address has the host `FIELD.credential.example`. */
	data(name) {
		const data = {};
		for (const property of (this.type(name) || {}).properties || []) {
			const options = (property.options || []).filter((option) => option && 'value' in option);
			if (options.length || ['boolean', 'hidden', 'number', 'notice'].includes(property.type)) data[property.name] = property.default;
			else data[property.name] = this.note(property.name, value(property.name, property.default));
		}
		data.oauthTokenData ??= this.open({ access_token: this.note('accessToken', 'c_accessToken'), callbackQueryString: { realmId: this.note('realmId', 'c_realmId') } }, (key) => value(key.replace(/domain$/i, 'url')));
		return this.open(data, value);
	}

	/** Return *data* with a value for any other name too, made by *make*: some fields are known to the provider only. */
	open(data, make) {
		return new Proxy(data, { get: (target, key) => (key in target || typeof key === 'symbol' || key === 'then' || key === 'toJSON' ? target[key] : this.note(key, make(key))) });
	}

	/** Remember the field of a made-up value. The provider's own address is not made up. */
	note(name, made) {
		if (/c_|c-|credential\.example/.test(made)) this.made[made] = String(name);
		return made;
	}

	/** Add what the credential declares to *request*; returns how it is authenticated. */
	async apply(name, request, data) {
		const type = this.type(name) || {};
		const { authenticate } = type;
		if (typeof authenticate === 'function') return [await authenticate.call(type, data, request) || request, 'function'];
		if (!authenticate) return [request, DECLARED.test(name) || type.extends ? (type.extends || ['declared'])[0] : 'none'];
		const added = evaluated(authenticate.properties || {}, { $credentials: data });
		const headers = { ...request.headers, ...added.headers };
		const joined = { ...request, headers, qs: { ...request.qs, ...added.qs } };
		if (added.auth) joined.auth = added.auth;
		if (added.body) joined.body = { ...request.body, ...added.body };
		return [joined, 'generic'];
	}
}

function value(name, given) {
	if (typeof given === 'string' && /^https?:/.test(given)) return given;
	const plain = String(name).toLowerCase().replace(/[^a-z0-9]/g, '');
	if (/subdomain|region/i.test(name)) return given || `c-${plain}`;
	if (/api-?key/i.test(name)) return `c_${name}-us1`;
	return HOST.test(name) ? (/domain|host/i.test(name) && !/url/i.test(name) ? `${plain}.credential.example` : `https://${plain}.credential.example`) : `c_${name}`;
}

/** Return *content* with its expressions (`=Bearer {{$credentials.key}}`) computed from *scope*. */
function evaluated(content, scope) {
	if (Array.isArray(content)) return content.map((each) => evaluated(each, scope));
	if (content && typeof content === 'object') {
		return Object.fromEntries(Object.entries(content).map(([key, each]) => [evaluated(key, scope), evaluated(each, scope)]));
	}
	if (typeof content !== 'string' || !content.startsWith('=')) return content;
	const text = content.slice(1);
	const known = { toPathSegment: encodeURIComponent, ...scope };
	const names = Object.keys(known);
	const compute = (code) => new Function(...names, `return (${code});`)(...names.map((name) => known[name]));
	const whole = /^\{\{([\s\S]*)\}\}$/.exec(text);
	if (whole && !whole[1].includes('{{')) return compute(whole[1]);
	return text.replace(/\{\{([\s\S]*?)\}\}/g, (_, code) => { const found = compute(code); return found === undefined ? '' : String(found); });
}

module.exports = { Credentials, evaluated };
