'use strict';
/**
 * Record what the nodes of a file send: `node record.js ROOT FILE OUTPUT [TRANSPILER]`. FILE is relative to the package's folder
 * ROOT; TRANSPILER is the folder of an npm package that makes JavaScript of TypeScript. Writes {"nodes": [...]} to OUTPUT: for
 * each node its description, its operations, and for each operation the requests and items of several inputs; or {"error": TEXT}.
 */

const path = require('path');
const fs = require('fs');
const { assign, visible } = require('./values.js');
const { CONTENT, REFUSED, context, normal, plain } = require('./context.js');
const { Credentials } = require('./credentials.js');
const { requestOf, isDeclared } = require('./declared.js');
const { hook } = require('./modules.js');
const { hookTypeScript } = require('./typescript.js');
const { hookChance, setChance } = require('./chance.js');

const HANG_MS = 3000;
const MAX_OPTION_CASES = 8;
const CONTROL = new Set(['resource', 'operation', 'authentication']);
/** Parameters whose other values are operations, or kinds of credentials, of their own. */
const realTimeout = setTimeout;

/** Return the newest description of a node class, with the code that belongs to it. */
function newest(instance) {
	if (!instance || typeof instance !== 'object') return undefined;
	const versions = Object.keys(instance.nodeVersions || {}).map(Number).sort((a, b) => a - b);
	if (versions.length) {
		const version = versions.at(-1);
		const node = instance.nodeVersions[version];
		return { node, description: node.description, version };
	}
	const { description } = instance;
	return { node: instance, description, version: [].concat((description || {}).version || 1).at(-1) };
}

/**
 * Return the operations of this version, and those that a form shows in another version or for other parameters only, each as
 * {resource, operation, name, description}. A node without operations has one.
 */
function operationsOf(description, version) {
	const named = (name) => description.properties.filter((property) => property && property.name === name && Array.isArray(property.options));
	const found = [];
	const hidden = [];
	const resources = named('resource').flatMap((property) => property.options).filter((option) => option && 'value' in option);
	for (const property of named('operation')) {
		const shown = ((property.displayOptions || {}).show || {}).resource || [];
		const fitting = shown.length ? [].concat(shown) : resources.length ? resources.map((option) => option.value) : [''];
		for (const resource of fitting) {
			const isShown = visible(property, resource === '' ? {} : { resource }, version);
			for (const option of property.options) {
				if (!option || !('value' in option)) continue;
				const given = { resource, operation: option.value };
				const made = { ...given, name: option.name || '', description: option.description || option.action || '' };
				(isShown && visible(option, given, version) ? found : hidden).push(made);
			}
		}
	}
	const keyed = (list) => new Map(list.map((each) => [JSON.stringify([each.resource, each.operation]), each]));
	const unique = keyed(found);
	const elsewhere = [...keyed(hidden)].filter(([key]) => !unique.has(key)).map(([, each]) => each);
	const only = { resource: '', operation: '', name: description.displayName, description: description.description || '' };
	return [unique.size || elsewhere.length ? [...unique.values()] : [only], elsewhere];
}

function quietly(work) {
	return new Promise((resolve) => {
		const timer = realTimeout(() => resolve({ error: 'it did not end' }), HANG_MS);
		Promise.resolve().then(work).then((value) => ({ value }), (error) => ({ error: String((error && error.message) || error).slice(0, 300) })).then((end) => { clearTimeout(timer); resolve(end); });
	});
}

function itemsOf(value) {
	const lists = Array.isArray(value) ? value : [];
	return lists.flatMap((items) => (Array.isArray(items) ? items : [])).map((item) => {
		const [json, files] = [item && item.json !== undefined ? item.json : item, filesOf(item)];
		return plain(files.length ? { ...json, $files: files } : json);
	});
}

/** Return the contents of the files of an item: a port has them below "$files". */
function filesOf(item) {
	return Object.values((item && item.binary) || {}).filter((each) => each && each[CONTENT] !== undefined).map((each) => each[CONTENT]);
}

async function declaredRequest(subject, parameters) {
	const request = requestOf(subject.description, parameters, subject.version, subject.credentials);
	const credential = (subject.description.credentials || []).filter((each) => visible(each, parameters, subject.version))[0];
	if (!credential) return normal(request);
	const [full, authentication] = await subject.credentials.apply(credential.name, request, subject.credentials.data(credential.name));
	return { ...normal(full), credential: credential.name, authentication };
}

/** Run the case *title* of an operation once. Learners answer if *shapes* is undefined, otherwise what was learned. */
async function once(subject, title, parameters, isCalm, shapes, refuses) {
	setChance([title, parameters]);
	const run = { ...subject, parameters, shapes: shapes || [], learns: !shapes, isCalm, refuses, requests: [], answers: [], withheld: [], unsupported: new Set(), asked: new Set(), files: new Set(), kept: {} };
	const code = subject.node.execute || subject.node.executeSingle;
	if (typeof code !== 'function' && isDeclared(subject.description)) {
		const end = await quietly(() => declaredRequest(subject, parameters));
		if (end.value) run.requests.push(end.value);
		return { run, items: undefined, error: end.error };
	}
	const custom = ((subject.node.customOperations || {})[parameters.resource] || {})[parameters.operation];
	if (!custom && typeof code !== 'function') return { run, items: undefined, error: 'it waits for events: it has no code that is executed with input' };
	const end = await quietly(() => (custom || code).call(context(run)));
	return { run, items: itemsOf(end.value), error: end.error };
}

/** Return false for an address that the code made of something that was not there. */
const hasAddress = (request) => !/stand-in:|\bundefined\b|\bNaN\b|\[object /.test(request.url);

/** Return why a case shows something else than the node's own code would send, or "". */
function unusable(requests, items) {
	const standIn = /stand-in:([^"./]+)/.exec(JSON.stringify([requests, items]) || '');
	if (standIn) return `it needs the package ${standIn[1]}, which is not installed`;
	const broken = requests.find((request) => !hasAddress(request));
	return broken ? `its address ${broken.url} has a value that was not there` : '';
}

/** Return one case: what the operation sends for *chosen* parameters, and what comes out for the answers. */
async function caseOf(subject, chosen, mode, title) {
	const { parameters, made } = assign(subject.description.properties, subject.version, chosen, mode, title);
	let best;
	for (const isCalm of [false, true]) {
		const learned = await once(subject, title, parameters, isCalm);
		const final = learned.run.requests.length ? await once(subject, title, parameters, isCalm, learned.run.shapes) : learned;
		if (!best || !final.error) best = final;
		if (!best.error || !learned.run.requests.length) break;
	}
	const { run } = best;
	const fault = unusable(run.requests, best.items);
	if (fault) best = { ...best, error: fault };
	return {
		case: title, parameters: plain(parameters), values: made, requests: run.requests.filter(hasAddress), answers: plain(run.answers), withheld: run.withheld,
		items: best.error ? undefined : best.items, error: best.error, credentials: [...run.asked], files: [...run.files], unsupported: [...run.unsupported],
	};
}

/** Return the case in which the API answers with an error: its items are undefined if the code fails then, as it mostly does. */
async function refusedCase(subject, chosen) {
	const { parameters, made } = assign(subject.description.properties, subject.version, chosen, 'plain', 'plain');
	const { run, items, error } = await once(subject, 'refused', parameters, false, undefined, true);
	return { case: 'refused', refused: REFUSED, parameters: plain(parameters), values: made, requests: run.requests.filter(hasAddress), answers: [], withheld: [], items: error ? undefined : items, credentials: [...run.asked], files: [...run.files], unsupported: [] };
}

/** Return the further cases of an operation: each option of an enumeration, and the other value of each boolean. */
function alternatives(subject, chosen, first) {
	const found = [];
	for (const property of subject.description.properties) {
		const fits = property && property.name && !CONTROL.has(property.name) && !(property.name in chosen) && visible(property, { ...first.parameters }, subject.version);
		if (!fits) continue;
		if (property.type === 'boolean') found.push([property.name, !first.parameters[property.name]]);
		if (property.type === 'options') {
			for (const option of (property.options || []).slice(0, MAX_OPTION_CASES)) {
				if (option && 'value' in option && option.value !== first.parameters[property.name]) found.push([property.name, option.value]);
			}
		}
	}
	return found.slice(0, 3 * MAX_OPTION_CASES);
}

async function operation(subject, described) {
	const chosen = {};
	if (described.resource !== '') chosen.resource = described.resource;
	if (described.operation !== '') chosen.operation = described.operation;
	const cases = [];
	for (const mode of ['plain', 'required', 'all', 'several']) cases.push(await caseOf(subject, chosen, mode, mode));
	if (cases[0].requests.length && !cases[0].error && !isDeclared(subject.description)) cases.push(await refusedCase(subject, chosen));
	for (const [name, value] of alternatives(subject, chosen, cases[0])) cases.push(await caseOf(subject, { ...chosen, [name]: value }, 'plain', `${name}=${value}`));
	return { ...described, cases };
}

/** Return a description as plain data, without functions. */
const told = (description) => plain({ ...description, icon: undefined, codex: undefined });

async function nodesOf(file, root, state) {
	const exported = require(file);
	const found = [];
	for (const [name, each] of Object.entries(exported)) {
		if (typeof each !== 'function' || !each.prototype) continue;
		let subject;
		try { subject = newest(new each()); } catch { continue; }
		if (!subject || !subject.description || !Array.isArray(subject.description.properties)) continue;
		subject.credentials = new Credentials(root);
		const operations = [];
		const [shown, hidden] = operationsOf(subject.description, subject.version);
		for (const described of shown) operations.push(await operation(subject, described));
		const types = (subject.description.credentials || []).filter(Boolean).map((credential) => ({ name: credential.name, type: plain(subject.credentials.type(credential.name) || null) }));
		found.push({ file: path.relative(root, file), class: name, version: subject.version, description: told(subject.description), credentials: types, secrets: subject.credentials.made, operations, hidden });
	}
	const loaded = [...new Set([file, ...state.loaded])].filter((each) => each.startsWith(root + path.sep)).map((each) => path.relative(root, each)).sort();
	for (const each of found) Object.assign(each, { loaded, unsupported: [...state.unsupported], missing: [...state.missing] });
	return found;
}

async function main() {
	const [given, file, output, transpiler] = process.argv.slice(2);
	const root = fs.realpathSync(given);
	const finish = (content) => { fs.writeFileSync(output, JSON.stringify(content)); process.exit(0); };
	const state = hook(root);
	for (const name of ['log', 'info', 'warn', 'error', 'debug', 'trace']) console[name] = () => {};
	process.on('unhandledRejection', () => {});
	process.on('uncaughtException', () => {});
	global.setTimeout = (work, _, ...more) => setImmediate(work, ...more);
	global.setInterval = () => 0;
	hookChance();
	global.fetch = () => Promise.reject(new Error('fetch is not recorded'));
	try {
		if (transpiler) hookTypeScript(require('module'), transpiler);
		finish({ nodes: await nodesOf(path.resolve(root, file), root, state) });
	} catch (error) {
		finish({ error: String((error && error.stack) || error).slice(0, 1000) });
	}
}

main();
