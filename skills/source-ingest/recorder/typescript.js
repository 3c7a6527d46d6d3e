'use strict';
/** TypeScript files of a package are made JavaScript when they are loaded, by a transpiler that is installed. */

const fs = require('fs');
const path = require('path');

const TARGET = 'es2022';

/** Return a function that makes JavaScript of TypeScript, with the transpiler in *folder*. */
function transpiler(folder) {
	const kept = require(folder); // before the node's code runs: it may use modules that this code may not
	switch (path.basename(folder)) {
		case 'esbuild': return (code, file) => kept.transformSync(code, { loader: 'ts', format: 'cjs', target: TARGET, sourcefile: file }).code;
		case 'core': return (code, file) => kept.transformSync(code, { filename: file, swcrc: false, module: { type: 'commonjs' }, jsc: { target: TARGET, parser: { syntax: 'typescript', decorators: true } } }).code;
		default: {
			const compilerOptions = { module: kept.ModuleKind.CommonJS, target: kept.ScriptTarget.ES2022, esModuleInterop: true };
			return (code, file) => kept.transpileModule(code, { compilerOptions, fileName: file }).outputText;
		}
	}
}

/** Load files that end with .ts from now on. */
function hookTypeScript(Module, folder) {
	const toJavaScript = transpiler(folder);
	Module._extensions['.ts'] = (module, file) => module._compile(toJavaScript(fs.readFileSync(file, 'utf8'), file), file);
}

module.exports = { hookTypeScript };
