'use strict';
/**
 * The clock and random values, made of the input of a case: a recording can be repeated, and the values of two inputs differ, so that
 * they are taken for constants nowhere.
 */

const crypto = require('crypto');

const RealDate = Date;
const DAY_MS = 86_400_000;

let seed = 1;
let now = 0;
let mark = '';

/** Begin again with the values that belong to *input*. */
function setChance(input) {
	const digest = crypto.createHash('sha256').update(JSON.stringify(input)).digest();
	seed = digest.readUInt32LE(0);
	mark = digest.toString('hex', 8, 10).replace(/[0-9]/g, (digit) => 'ghijklmnop'[digit]);
	now = RealDate.UTC(2026, 1, 2, 3, 4, 5) + (digest.readUInt16LE(4) % 3000) * DAY_MS + (digest.readUInt32LE(6) % DAY_MS);
}

/** Return letters that belong to the input: the answers of two inputs differ too. */
const inputMark = () => mark;

/** Return the next number of a linear congruential generator, from 0 to 1 (Numerical Recipes' constants). */
function random() {
	seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
	return seed / 2 ** 32;
}

function fill(target) {
	const bytes = ArrayBuffer.isView(target) ? new Uint8Array(target.buffer, target.byteOffset, target.byteLength) : new Uint8Array(target);
	for (let index = 0; index < bytes.length; index += 1) bytes[index] = Math.floor(random() * 256);
	return target;
}

const randomBytes = (size, done) => { const made = fill(Buffer.alloc(size)); return done ? done(null, made) : made; };

function randomUUID() {
	const hex = randomBytes(16).toString('hex');
	return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

/** Put these values in the place of the real ones. */
function hookChance() {
	class RecordedDate extends RealDate {
		constructor(...given) { super(...(given.length ? given : [now])); }
		static now() { return now; }
	}
	const called = new Proxy(RecordedDate, { apply: () => new RecordedDate().toString() });
	global.Date = called;
	for (const each of [RealDate, RecordedDate]) each.prototype.constructor = called;
	Math.random = random;
	const own = { randomUUID, randomBytes, pseudoRandomBytes: randomBytes, randomFillSync: fill, randomInt: (low, high) => (high === undefined ? Math.floor(random() * low) : low + Math.floor(random() * (high - low))) };
	Object.assign(crypto, own);
	for (const [name, value] of [['randomUUID', randomUUID], ['getRandomValues', fill]]) Object.defineProperty(crypto.webcrypto, name, { value });
}

module.exports = { hookChance, inputMark, setChance };
