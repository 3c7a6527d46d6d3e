'use strict';
/** Declarative nodes: the description itself says what is sent (`requestDefaults`, `routing`). */

const { evaluated } = require('./credentials.js');
const { visible } = require('./values.js');

function put(target, dotted, value) {
	const keys = String(dotted).split('.');
	const last = keys.pop();
	let inner = target;
	for (const key of keys) inner = inner[key] ??= {};
	inner[last] = value;
}

function merge(request, more) {
	for (const [key, value] of Object.entries(more || {})) {
		request[key] = value && typeof value === 'object' && !Array.isArray(value) ? { ...request[key], ...value } : value;
	}
}

/** Add what the routing of a property, and of what it contains, says for its value. */
function route(property, value, request, scope, version) {
	if (value === undefined) return;
	const own = { ...scope, $value: value };
	const routings = [property.routing];
	const chosen = (property.options || []).filter((option) => option && 'value' in option && [].concat(value).includes(option.value));
	routings.push(...chosen.map((option) => option.routing));
	for (const routing of routings.filter(Boolean)) {
		merge(request, evaluated(routing.request || {}, own));
		const send = routing.send;
		if (send && send.type && send.property) {
			const sent = 'value' in send ? evaluated(send.value, own) : value;
			const name = evaluated(send.property, own);
			request[send.type === 'query' ? 'qs' : 'body'] ??= {};
			const place = request[send.type === 'query' ? 'qs' : 'body'];
			if (send.propertyInDotNotation === false) place[name] = sent;
			else put(place, name, sent);
		}
	}
	if (property.type === 'collection') for (const option of property.options || []) route(option, value[option.name], request, own, version);
	if (property.type === 'fixedCollection') {
		for (const group of property.options || []) {
			[].concat(value[group.name] ?? []).forEach((entry, index) => {
				for (const inner of group.values || []) route(inner, entry[inner.name], request, { ...own, $index: index, $parent: entry }, version);
			});
		}
	}
}

/** Return the request of a declarative operation for these parameters. */
function requestOf(description, parameters, version, credentials) {
	const data = (description.credentials || []).map((each) => credentials.data(each.name))[0] || {};
	const scope = { $parameter: parameters, $credentials: data, $json: {}, $index: 0, $version: version };
	const request = structuredClone(description.requestDefaults || {});
	for (const [key, value] of Object.entries(request)) request[key] = evaluated(value, scope);
	for (const property of description.properties) {
		if (property && property.name && visible(property, parameters, version)) route(property, parameters[property.name], request, scope, version);
	}
	return request;
}

/** Return true if an operation is declared rather than coded. */
const isDeclared = (description) => Boolean(description.requestDefaults) || description.properties.some((property) => property && (property.routing || (property.options || []).some((option) => option && option.routing)));

module.exports = { requestOf, isDeclared };
