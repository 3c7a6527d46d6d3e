'use strict';
/** What the node's code gets from `require`: its own files, installed packages, and stand-ins for the rest. */

const Module = require('module');
const path = require('path');

const REFUSED = /^(node:)?(net|tls|http|https|http2|dns|dgram|child_process|cluster|worker_threads|inspector|fs|fs\/promises|vm|repl)$/;
/** Modules that reach something else than the code; a node that needs one is listed as unsupported. */

const STAND_IN = 'stand-in:';
/** Beginning of the text of a stand-in. What has it was not made by the node's own code. */

const WORKFLOW = 'n8n-workflow';

/** Return an object that can be read, called and constructed without end. */
function standIn(used, name) {
	const target = function () {};
	return new Proxy(target, {
		get: (_, key) => {
			if (key === '__esModule') return true;
			if (key === Symbol.toPrimitive) return () => `${STAND_IN}${name}`;
			if (key === 'then') return undefined;
			if (key === 'prototype') return target.prototype;
			if (typeof key === 'symbol') return undefined;
			return standIn(used, `${name}.${key}`);
		},
		apply: () => { used(name); return standIn(used, name); },
		construct: () => { used(name); return standIn(used, name); },
	});
}

function plainError(name) {
	return class extends Error {
		constructor(...given) {
			const cause = given.find((each) => each instanceof Error) || given.find((each) => typeof each === 'string') || given[1];
			super(cause instanceof Error ? cause.message : String((cause && cause.message) || cause || name));
			this.name = name;
			if (cause instanceof Error) this.cause = cause;
		}
	};
}

/** The part of n8n-workflow that nodes use, for a package that is not installed with its dependencies. */
function workflow(used) {
	const own = {
		jsonParse: (text, options = {}) => { try { return JSON.parse(text); } catch (error) { if ('fallbackValue' in options) return options.fallbackValue; throw new Error(options.errorMessage || error.message); } },
		jsonStringify: (value) => JSON.stringify(value),
		deepCopy: (value) => (value === undefined ? value : JSON.parse(JSON.stringify(value))),
		sleep: async () => {},
		isObjectEmpty: (value) => !value || !Object.keys(value).length,
		randomInt: (low, high) => (high === undefined ? 0 : low),
		randomString: (length) => 'r'.repeat(length),
		removeCircularRefs: (value) => value,
		capitalize: (text) => text.charAt(0).toUpperCase() + text.slice(1),
		tryToParseDateTime: (value) => value,
		BINARY_ENCODING: 'base64',
		NodeConnectionTypes: new Proxy({}, { get: (_, key) => (typeof key === 'symbol' ? undefined : key.charAt(0).toLowerCase() + key.slice(1)) }),
		Node: class {},
		VersionedNodeType: class {
			constructor(versions, description) { this.nodeVersions = versions; this.description = description; this.currentVersion = description.defaultVersion; }
			getNodeType(version) { return this.nodeVersions[version || this.currentVersion]; }
		},
	};
	own.NodeConnectionType = own.NodeConnectionTypes;
	for (const name of ['NodeOperationError', 'NodeApiError', 'ApplicationError', 'UserError', 'OperationalError', 'UnexpectedError', 'NodeSslError', 'ExpressionError', 'WorkflowOperationError', 'BaseError']) own[name] = plainError(name);
	return new Proxy(own, { get: (target, key) => (key in target || typeof key === 'symbol' ? target[key] : key === '__esModule' ? true : standIn(used, `${WORKFLOW}.${key}`)) });
}

/** Load modules of the package below *root* from now on. Returns {loaded, unsupported}, which `forget` empties. */
function hook(root) {
	const state = { loaded: new Set(), unsupported: new Set(), missing: new Set() };
	const original = Module._load;
	const own = workflow((name) => state.missing.add(name));
	Module._load = function load(request, parent, isMain) {
		const inside = parent && parent.filename && parent.filename.startsWith(root + path.sep) && !parent.filename.includes(`${path.sep}node_modules${path.sep}`);
		if (!inside) return original.apply(this, arguments);
		if (REFUSED.test(request)) return standIn((name) => state.unsupported.add(name.split('.')[0]), request);
		try {
			const file = Module._resolveFilename(request, parent, isMain);
			const result = original.apply(this, arguments);
			if (path.isAbsolute(file) && !file.includes(`${path.sep}node_modules${path.sep}`)) state.loaded.add(file);
			return result;
		} catch (error) {
			if (error.code !== 'MODULE_NOT_FOUND') throw error;
			if (request === WORKFLOW) return own;
			if (request.startsWith('.')) throw error;
			return standIn((name) => state.missing.add(name.split('.')[0]), request);
		}
	};
	return state;
}

module.exports = { hook, STAND_IN };
