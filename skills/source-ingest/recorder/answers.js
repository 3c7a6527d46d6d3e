'use strict';
/** Answers of the API: the code is run with an answer that learns what is read from it, then with such an answer. */

const LIST = new Set(['map', 'forEach', 'filter', 'reduce', 'some', 'every', 'find', 'findIndex', 'push', 'concat', 'slice', 'flat', 'flatMap', 'sort', 'join', 'entries', 'pop', 'shift', 'splice', 'length', 'reverse', 'at', 'unshift']);
const TEXT = new Set(['split', 'replace', 'trim', 'toLowerCase', 'toUpperCase', 'startsWith', 'endsWith', 'match', 'substring', 'substr', 'charAt', 'indexOf', 'includes', 'padStart', 'toString', 'localeCompare', 'replaceAll', 'matchAll']);
const CALLS = new Set(['call', 'apply', 'bind']);
const CURSOR = /next|cursor|continu|more|offset|token|page|after/i;
/** Keys that lead to a further page. The answer to a repeated request has none: it is the last page. */

const FAULT = /^(errors?|error_?(code|message|type)?|fault|exception|message|warnings?)$/i;
/** Keys of an answer that says what went wrong. Some code fails when there is one. */

const PATH = /[.[]/;
/** Names that lodash reads key by key. */

const ADDRESS = /(link|url|uri|href)$/i;
/** Keys whose text is an address: some code reads its host. */

const MAX_DEPTH = 12;

const isLeftOut = (key, options) => (options.isLast && CURSOR.test(key)) || (options.isCalm && FAULT.test(key));

const fresh = () => ({ kind: '', keys: {}, item: undefined, withheld: new Set() });
const shapes = new WeakMap();

/** Return the text at *path*; for a key that holds an address, an address of the host that answers. */
const textOf = (path, options) => (options.origin && ADDRESS.test(path) ? `${options.origin}/${path}` : path);

/** Return a stand-in for an answer. It notes in *shape* what is read from it. */
function learner(shape, options, path = 'answer', depth = 0) {
	const known = {};
	const child = (key) => {
		shape.kind = 'object';
		shape.keys[key] ??= fresh();
		known[key] ??= learner(shape.keys[key], options, `${path}.${key}`, depth + 1);
		return known[key];
	};
	const list = () => {
		shape.kind = 'list';
		shape.item ??= fresh();
		known[0] ??= learner(shape.item, options, `${path}.0`, depth + 1);
		return [known[0]];
	};
	const text = () => {
		if (!shape.kind) shape.kind = 'text';
		return textOf(path.replaceAll('.', '_'), options);
	};
	/** Return what stands for the method *key* if it is called, and for the key of that name if not. */
	const either = (key, call) => new Proxy(call, {
		get: (target, inner) => (CALLS.has(inner) ? target[inner].bind(target) : child(key)[inner]),
		has: (target, inner) => inner in child(key),
	});
	const proxy = new Proxy({}, {
		get: (target, key) => {
			if (key in target && typeof key === 'string') return target[key];
			if (key === 'then' || key === 'toJSON' || key === 'constructor' || depth > MAX_DEPTH) return undefined;
			if (key === Symbol.toPrimitive) return () => text();
			if (key === Symbol.iterator) return () => list()[Symbol.iterator]();
			if (typeof key === 'symbol') return undefined;
			if (/^\d+$/.test(key)) return list()[0];
			if (key === 'length') return list().length;
			if (LIST.has(key)) return either(key, (...given) => list()[key](...given));
			if (TEXT.has(key)) return either(key, (...given) => text()[key](...given));
			if (!isLeftOut(key, options)) return child(key);
			if (options.isLast && CURSOR.test(key)) { shape.kind ||= 'object'; shape.withheld.add(key); }
			return undefined;
		},
		has: (target, key) => { if (typeof key !== 'string' || PATH.test(key)) return false; child(key); return true; },
		ownKeys: (target) => Reflect.ownKeys(target),
	});
	shapes.set(proxy, shape);
	return proxy;
}

/**
 * Return an answer with all that *shape* says was read: lists have two entries, the rest is text that begins with *root*. What
 * the last page does not have is added to `options.withheld`, as dotted paths.
 */
function answer(shape, options, root, path = root, dotted = '') {
	if (shape.kind === 'list') return ['0', '1'].map((number) => answer(shape.item, options, root, `${path}_${number}`, `${dotted}${number}.`));
	if (shape.kind === 'text' && path !== root) return textOf(path, options);
	if (shape.kind === 'object' || path === root) {
		const kept = Object.entries(shape.keys).filter(([key]) => !isLeftOut(key, options));
		for (const key of shape.withheld) options.withheld.push(`${dotted}${key}`);
		const entries = kept.map(([key, inner]) => [key, answer(inner, options, root, `${path}_${key}`, `${dotted}${key}.`)]);
		return entries.length ? Object.fromEntries(entries) : { id: `${path}_id`, name: `${path}_name` };
	}
	return textOf(path, options);
}

/** Return true for a stand-in. */
const isLearner = (value) => value !== null && typeof value === 'object' && shapes.has(value);

/** Note that a stand-in is a list. */
const asList = (value) => { void value.length; };

module.exports = { fresh, learner, answer, isLearner, asList };
