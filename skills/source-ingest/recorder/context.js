'use strict';
/** The `this` of a node's code: it gives parameters, and records each request instead of sending it. */

const { fresh, learner, answer, isLearner, asList } = require('./answers.js');
const { STAND_IN } = require('./modules.js');
const { inputMark } = require('./chance.js');
const { evaluated } = require('./credentials.js');

const MAX_REQUESTS = 12;

const PAGES = 3;
/** The third answer to one request is the last page: two requests for further pages show how the next one is made. */

class Recorded extends Error {}

/** Return *request* in one form: method, url, query, headers, body, and how the body is encoded. */
function normal(given, more) {
	let request = typeof given === 'string' || given instanceof URL ? { ...more, url: String(given) } : { ...given };
	const base = String(request.baseURL || request.baseUrl || '');
	const named = String(request.url || request.uri || '');
	const url = /^https?:/.test(named) || !base ? named : `${base.replace(/\/$/, '')}/${named.replace(/^\//, '')}`;
	const [address, search = ''] = url.split('#')[0].split('?');
	const query = { ...Object.fromEntries(new URLSearchParams(search)), ...request.qs, ...request.params };
	const form = request.form || request.formData;
	let body = request.body === undefined ? form : request.body;
	let encoding = request.formData ? 'multipart' : request.form ? 'form' : 'json';
	if (body && typeof body.getHeaders === 'function') [encoding, body] = ['multipart', parts(body)];
	if (body instanceof URLSearchParams) [encoding, body] = ['form', Object.fromEntries(body)];
	if (Buffer.isBuffer(body)) [encoding, body] = ['binary', body.toString('latin1')];
	if (typeof body === 'string') {
		try { body = JSON.parse(body); } catch { encoding = encoding === 'json' ? 'text' : encoding; }
	}
	const headers = Object.fromEntries(Object.entries(request.headers || {}).filter(([, each]) => each !== undefined).map(([key, each]) => [key.toLowerCase(), String(each)]));
	if (encoding === 'multipart') body = contents(body);
	if (/x-www-form-urlencoded/.test(headers['content-type'] || '') && encoding === 'json') encoding = 'form';
	const auth = request.auth ? { user: String(request.auth.user || request.auth.username || ''), password: String(request.auth.pass || request.auth.password || '') } : undefined;
	const isEmpty = body === undefined || body === null || body === '' || (typeof body === 'object' && !Object.keys(body).length);
	return { method: String(request.method || 'GET').toUpperCase(), url: address, query: plain(query), headers, ...(isEmpty ? {} : { body: plain(body), encoding }), ...(auth ? { basic: auth } : {}) };
}

/** Return the parts of a form; of a file only its content: a port sends it with the name of the field. */
function contents(form) {
	if (!form || typeof form !== 'object') return form;
	return Object.fromEntries(Object.entries(form).map(([name, each]) => [name, each && typeof each === 'object' && 'value' in each && 'options' in each ? each.value : each]));
}

function parts(form) {
	const found = {};
	let name = '';
	for (const each of form._streams || []) {
		const head = typeof each === 'string' && /name="([^"]*)"/.exec(each);
		if (head) [, name] = head;
		else if (name && typeof each !== 'function') { found[name] = Buffer.isBuffer(each) ? each.toString('latin1') : each; name = ''; }
	}
	return found;
}

function plain(value) {
	try {
		return JSON.parse(JSON.stringify(value, function (key, each) {
			if (Buffer.isBuffer(this[key])) return this[key].toString('latin1'); // before its toJSON
			if (isLearner(each)) return 'answer';
			if (typeof each === 'function') return String(each).startsWith(STAND_IN) ? String(each) : undefined;
			return typeof each === 'bigint' ? String(each) : each;
		}) ?? 'null');
	} catch { return String(value); }
}

function read(values, name) {
	return name.split('.').reduce((found, part) => {
		const [, key, index] = /^([^[]*)(?:\[(\d+)\])?$/.exec(part) || [null, part];
		const inner = found === undefined || found === null ? undefined : found[key];
		return index === undefined || inner === undefined ? inner : inner[index];
	}, values);
}

const REFUSED = 404;
/** HTTP status of the answer that is an error. */

const refusal = () => Object.assign(new Error(`Request failed with status code ${REFUSED}`), { httpCode: String(REFUSED), statusCode: REFUSED, status: REFUSED, error: {}, response: { status: REFUSED, statusCode: REFUSED, headers: {}, body: {}, data: {} } });

/** Return a function that records requests and answers them: with learners, or with the answers of an earlier run. */
function recorder(run) {
	return async (given, more, credential) => {
		if (run.requests.length >= MAX_REQUESTS) throw new Recorded('the code sends requests without end');
		const full = typeof given === 'object' && given && given.resolveWithFullResponse;
		let request = typeof given === 'object' && given && !(given instanceof URL) ? { ...given } : normal(given, more);
		let authentication = 'none';
		if (credential) [request, authentication] = await run.credentials.apply(credential, request, run.credentials.data(credential));
		const number = run.requests.length;
		run.requests.push({ ...normal(request), ...(credential ? { credential, authentication } : {}) });
		if (run.refuses) throw refusal();
		run.shapes[number] ??= fresh();
		const sent = run.requests.map((each) => `${each.method} ${each.url.replace(/a\d+[a-z]+_/g, '')}`);
		const isLast = sent.filter((each) => each === sent[number]).length >= PAGES;
		const [origin] = /^https?:\/\/[^/?#]+/.exec(run.requests[number].url) || [''];
		const options = { isLast, isCalm: run.isCalm, origin, withheld: [] };
		const answered = run.learns ? learner(run.shapes[number], options) : answer(run.shapes[number], options, `a${number}${inputMark()}`);
		run.withheld[number] = options.withheld;
		run.answers[number] = run.learns ? undefined : structuredClone(answered);
		return full || (given && given.returnFullResponse) ? { body: answered, headers: {}, statusCode: 200 } : answered;
	};
}

const FILE = { mimeType: 'made-up/mime-type', fileName: 'made-up-file.bin', fileExtension: 'made-up-extension', fileSize: '7 made-up bytes' };
/** What is known of each file of the input; code that sends it sends something that no parameter has. */

const CONTENT = 'fireswarm:content';
/** Key of the content of a file that the code makes. */

const textOf = (content) => (Buffer.isBuffer(content) ? content.toString('latin1') : String(content));

/** Return the file of the input that a parameter names: its content is that name, so recordings show where it goes. */
function fileOf(run, name) {
	if (name && typeof name === 'object') return name;
	run.files.add(String(name));
	return { ...FILE, data: Buffer.from(String(name)).toString('base64') };
}

function helpersOf(run) {
	const send = recorder(run);
	const own = {
		request: (given, more) => send(given, more),
		httpRequest: (given) => send(given),
		requestWithAuthentication: (name, given) => send(given, undefined, name),
		httpRequestWithAuthentication: (name, given) => send(given, undefined, name),
		requestOAuth1: (name, given) => send(given, undefined, name),
		requestOAuth2: (name, given) => send(given, undefined, name),
		requestWithAuthenticationPaginated: async (given, index, options, name) => [{ body: await send(given, undefined, name), headers: {}, statusCode: 200 }],
		returnJsonArray: (given) => { const list = Array.isArray(given) ? given : [given]; return list.map((each) => (each && !isLearner(each) && each.json ? each : { json: each })); },
		constructExecutionMetaData: (items, { itemData } = {}) => items.map((item) => ({ ...item, pairedItem: itemData })),
		normalizeItems: (given) => [].concat(given).map((each) => (each.json ? each : { json: each })),
		copyInputItems: (items, names) => items.map((item) => Object.fromEntries(names.map((name) => [name, item.json[name]]))),
		assertBinaryData: (_, name) => fileOf(run, name),
		getBinaryDataBuffer: async (_, name) => Buffer.from(fileOf(run, name).data, 'base64'),
		getBinaryStream: async () => Buffer.from(''),
		getBinaryMetadata: async () => ({ fileName: FILE.fileName, mimeType: FILE.mimeType, fileSize: FILE.fileSize }),
		binaryToBuffer: async (content) => Buffer.from(isLearner(content) ? String(content) : content),
		binaryToString: async (content) => String(content),
		prepareBinaryData: async (content, fileName, mimeType) => ({ ...FILE, data: '', [CONTENT]: textOf(content), fileName: isLearner(fileName) ? String(fileName) : fileName, mimeType: mimeType || FILE.mimeType }),
		setBinaryDataBuffer: async (data, content) => ({ ...data, [CONTENT]: textOf(content) }),
		detectBinaryEncoding: () => 'utf-8',
		createDeferredPromise: () => { const made = {}; made.promise = new Promise((resolve, reject) => Object.assign(made, { resolve, reject })); return made; },
	};
	return new Proxy(own, { get: (target, key) => { if (key in target || typeof key === 'symbol') return target[key]; return () => { run.unsupported.add(`helpers.${String(key)}`); throw new Recorded(`helpers.${String(key)} is not recorded`); }; } });
}

/** Return the `this` for *run*: {node, description, version, parameters, credentials, requests, answers, shapes, learns}. */
function context(run) {
	const { parameters, description } = run;
	const parameter = (name, index, fallback, options) => {
		let value = read(parameters, String(name));
		if (value === undefined && fallback === undefined) throw new Error(`Could not get parameter "${name}"`);
		if (value === undefined) value = fallback;
		const isLocator = value && typeof value === 'object' && value.__rl;
		if (isLocator && ((options && options.extractValue) || (index && index.extractValue) || (fallback && fallback.extractValue))) return value.value;
		return value && typeof value === 'object' ? structuredClone(value) : value;
	};
	const own = {
		getNodeParameter: parameter,
		getCurrentNodeParameter: (name) => parameter(name, 0),
		getInputData: () => [{ json: {}, binary: new Proxy({}, { get: (_, name) => (typeof name === 'symbol' ? undefined : fileOf(run, name)) }) }],
		getCredentials: async (name) => { run.asked.add(name); return run.credentials.data(name); },
		continueOnFail: () => false,
		getNode: () => ({ id: 'node', name: String(description.displayName || ''), type: String(description.name || ''), typeVersion: run.version, position: [0, 0], parameters, credentials: Object.fromEntries((description.credentials || []).filter(Boolean).map((each) => [each.name, { id: '1', name: each.name }])) }),
		getTimezone: () => 'UTC',
		getWorkflow: () => ({ id: '1', name: 'workflow', active: false }),
		getWorkflowStaticData: () => run.kept,
		evaluateExpression: (text) => { try { return evaluated(text, { $parameter: parameters, $json: {} }); } catch { return text; } },
		getMode: () => 'manual',
		getExecutionId: () => '1',
		getInstanceId: () => 'instance',
		getWorkflowSettings: () => ({}),
		getItemIndex: () => 0,
		getInputSourceData: () => ({ previousNode: 'before' }),
		getExecutionCancelSignal: () => undefined,
		getContext: () => run.kept,
		getWorkflowDataProxy: () => ({ $json: {}, $node: {}, $items: () => [] }),
		logger: new Proxy({}, { get: () => () => {} }),
		helpers: helpersOf(run),
		nodeHelpers: helpersOf(run),
	};
	return new Proxy(own, { get: (target, key) => (key in target || typeof key === 'symbol' ? target[key] : key === 'then' ? undefined : () => undefined) });
}

module.exports = { CONTENT, REFUSED, context, normal, plain, asList };
