'use strict';
/** Values for the parameters of one operation: each has its own value, so that a request shows where it went. */

const MAX_DEPTH = 6;
const MAX_PASSES = 8;

const SHOWN = new Set(['notice', 'callout', 'button']);
/** Types of properties that are only shown: they have no value. */

/** Return true if a condition of displayOptions holds: a list of values, or conditions such as {_cnd: {gte: 2}}. */
function holds(wanted, value) {
	const values = Array.isArray(value) ? value : [value];
	return [].concat(wanted).some((each) => {
		const test = each && typeof each === 'object' ? each._cnd : undefined;
		if (!test) return values.includes(each);
		const [[name, bound]] = Object.entries(test);
		return values.some((found) => compare(name, found, bound));
	});
}

function compare(name, found, bound) {
	switch (name) {
		case 'eq': return found === bound;
		case 'not': return found !== bound;
		case 'gte': return found >= bound;
		case 'lte': return found <= bound;
		case 'gt': return found > bound;
		case 'lt': return found < bound;
		case 'between': return found >= bound.from && found <= bound.to;
		case 'includes': return String(found).includes(bound);
		case 'startsWith': return String(found).startsWith(bound);
		case 'endsWith': return String(found).endsWith(bound);
		case 'regex': return new RegExp(bound).test(String(found));
		case 'exists': return found !== undefined && found !== null && found !== '';
		default: return false;
	}
}

/** Return true if a property, a credential or an option is shown for these values. */
function visible(property, values, version) {
	const { show = {}, hide = {} } = property.displayOptions || {};
	const value = (key) => {
		if (key === '@version') return version;
		return key.replace(/^\//, '').split('.').reduce((found, part) => (found === undefined ? found : found[part]), values);
	};
	const isShown = Object.entries(show).every(([key, wanted]) => key.startsWith('@') && key !== '@version' ? false : holds(wanted, value(key)));
	return isShown && !Object.entries(hide).some(([key, wanted]) => value(key) !== undefined && holds(wanted, value(key)));
}

/** Return a number for the title of a case: the values of two cases differ, so that a part of one is taken for a constant nowhere. */
const offsetOf = (title) => 100 + [...title].reduce((sum, letter) => (31 * sum + letter.charCodeAt(0)) % 800, 0);

/** Makes values; `made` maps each value to the parameter that it stands for. */
class Values {
	constructor(version, isSeveral, title) {
		this.version = version;
		this.isSeveral = isSeveral;
		this.made = {};
		this.offset = offsetOf(title);
		this.count = this.offset;
	}

	note(path, value) {
		this.made[String(value)] = path;
		return value;
	}

	/** Return a value of *property* that is used nowhere else. With *full*, collections have all their options. */
	of(property, path, full, depth = 0) {
		this.count += 1;
		const name = String(property.name).replace(/[^A-Za-z0-9]/g, '');
		const many = property.typeOptions && property.typeOptions.multipleValues;
		const options = (property.options || []).filter((option) => option && 'value' in option);
		switch (property.type) {
			case 'boolean': return full ? !property.default : Boolean(property.default);
			case 'number': return this.note(path, this.number(property.typeOptions || {}));
			case 'options':
				if (options.length) return options.some((option) => option.value === property.default) ? property.default : options[0].value;
				return this.note(path, `s${this.count}${name}`);
			case 'multiOptions':
				return options.length ? options.slice(0, 2).map((option) => option.value) : [this.note(path, `s${this.count}${name}`)];
			case 'collection': return this.collection(property, path, full, depth, many);
			case 'fixedCollection': return this.groups(property, path, full, depth, many);
			case 'json': return JSON.stringify({ [`j${this.count}`]: this.note(path, `s${this.count}${name}`) });
			case 'dateTime': return this.note(path, new Date(Date.UTC(2026, 0, 2 + this.offset, 3, 0, this.count)).toISOString());
			case 'resourceLocator': return { __rl: true, mode: 'id', value: this.note(path, `s${this.count}${name}`) };
			case 'resourceMapper':
				return { mappingMode: 'defineBelow', value: { field: this.note(path, `s${this.count}${name}`) }, schema: [], matchingColumns: ['field'] };
			case 'assignmentCollection': return { assignments: [] };
			case 'filter': return { conditions: [], combinator: 'and' };
			case 'color': return this.note(path, `#${(0x100000 + this.count).toString(16)}`);
			default: {
				const one = (inner) => { this.count += many ? 1 : 0; return this.note(inner, this.text(property, name)); };
				return many ? this.list(path, one) : one(path);
			}
		}
	}

	text(property, name) {
		const value = `s${this.count}${name}`;
		if (/e-?mail/i.test(name)) return `${value}@mail.example`;
		if (/(url|uri|website)$/i.test(name)) return `https://${value.toLowerCase()}.example/x`;
		if (property.typeOptions && property.typeOptions.editor === 'json') return JSON.stringify({ [`j${this.count}`]: value });
		return this.isSeveral ? `${value}, ${value}2` : value;
	}

	number({ minValue = 0, maxValue = Infinity }) {
		const value = 1000 + this.count;
		return value <= maxValue ? Math.max(value, minValue) : Math.max(minValue, Math.min(maxValue, 2 + (this.count % 90)));
	}

	/** Return a list of one entry, or of two that differ, each made by *make* of its path. */
	list(path, make) {
		return (this.isSeveral ? [0, 1] : [0]).map((number) => make(`${path}.${number}`));
	}

	collection(property, path, full, depth, many) {
		if (!full || depth > MAX_DEPTH) return {};
		if (many) return this.list(path, (entry) => this.collection(property, entry, full, depth));
		const filled = {};
		for (const option of property.options || []) {
			if (option && option.name && !SHOWN.has(option.type)) filled[option.name] = this.of(option, `${path}.${option.name}`, full, depth + 1);
		}
		return filled;
	}

	groups(property, path, full, depth, many) {
		if ((!full && !property.required) || depth > MAX_DEPTH) return {};
		const filled = {};
		for (const group of property.options || []) {
			if (!group || !group.name) continue;
			const one = (inner) => this.entry(group, inner, full, depth);
			filled[group.name] = many ? this.list(`${path}.${group.name}`, one) : one(`${path}.${group.name}`);
		}
		return filled;
	}

	entry(group, path, full, depth) {
		const entry = {};
		for (const value of group.values || []) {
			if (value && value.name && !SHOWN.has(value.type) && visible(value, entry, this.version)) entry[value.name] = this.of(value, `${path}.${value.name}`, full, depth + 1);
		}
		return entry;
	}
}

/** Return what a form shows for an untouched property. */
function initial(property) {
	if (property.default !== undefined) return structuredClone(property.default);
	return property.type === 'collection' || property.type === 'fixedCollection' ? {} : '';
}

/**
 * Return {parameters, made} for an operation. *chosen* fixes some parameters, among them resource and operation. *mode*:
 * `required` sets what has to be set, `plain` every parameter at the top, `all` also the collections, `several` the same with two
 * entries of each list, and with a comma in each text. The values depend on the *title* of the case.
 */
function assign(properties, version, chosen, mode, title) {
	const values = new Values(version, mode === 'several', title);
	const isFull = mode === 'all' || mode === 'several';
	const parameters = { ...chosen };
	for (let pass = 0; pass < MAX_PASSES; pass += 1) {
		let added = 0;
		for (const property of properties) {
			if (!property || !property.name || SHOWN.has(property.type) || property.name in parameters || !visible(property, parameters, version)) continue;
			const asked = mode !== 'required' || property.required;
			const fixed = property.type === 'boolean' && !isFull;
			parameters[property.name] = asked && !fixed && property.type !== 'hidden' ? values.of(property, property.name, isFull) : initial(property);
			added += 1;
		}
		if (!added) break;
	}
	return { parameters, made: values.made };
}

module.exports = { assign, visible };
