// cell.js - a cell of a notebook as code that can be run: await and import everywhere, names that stay.
//
// What a cell declares outside of functions becomes a property of the global object, so that the next cell has it and may
// declare it again. The rest runs in an async function, whose value is that of the last expression.
'use strict';

const acorn = require('acorn');

const OPTIONS = {ecmaVersion: 'latest', allowAwaitOutsideFunction: true, allowHashBang: true};

function parse(source) {
  try {
    return acorn.parse(source, {...OPTIONS, sourceType: 'module'});
  } catch (error) {
    try {
      return acorn.parse(source, {...OPTIONS, sourceType: 'script'}); // what is not allowed in strict code
    } catch {
      throw error;
    }
  }
}

let typescript;

// JavaScript of TypeScript, line by line as far as can be. Null: it is none, or there is no compiler here.
function stripped(source) {
  if (typescript === undefined) {
    try {
      typescript = require('typescript');
    } catch {
      typescript = null;
    }
  }
  if (!typescript) return null;
  // an import may be for a later cell, so none is left out
  const keep = parseInt(typescript.version) < 5 ? 'preserveValueImports' : 'verbatimModuleSyntax';
  const made = typescript.transpileModule(source, {reportDiagnostics: true, compilerOptions: {
    target: 'ES2022', module: 'ESNext', [keep]: true, isolatedModules: true, experimentalDecorators: true}});
  return made.diagnostics.some((d) => d.code < 2000) ? null : made.outputText; // those below are about syntax
}

function names(pattern, into) {
  if (!pattern) return into;
  switch (pattern.type) {
    case 'Identifier': into.push(pattern.name); break;
    case 'ObjectPattern': for (const p of pattern.properties) names(p.value || p.argument, into); break;
    case 'ArrayPattern': for (const p of pattern.elements) names(p, into); break;
    case 'AssignmentPattern': names(pattern.left, into); break;
    case 'RestElement': names(pattern.argument, into); break;
  }
  return into;
}

class Cell {
  constructor(source) {
    this.source = source.replace(/^#!/, '//');
    this.edits = [];     // [start, end, text]
    this.names = [];     // that it declares
    this.functions = []; // [start, end]: declared before anything runs
    const body = parse(this.source).body.filter((node) => !this.drop(node));
    for (const node of body) this.declare(node);
    const last = body[body.length - 1];
    if (last && last.type === 'ExpressionStatement') { // a text alone is a value, not a directive
      this.edit(last.start, last.expression.start, `;return (${this.source.slice(last.start, last.expression.start)}`);
      this.edit(last.expression.end, last.end, `${this.source.slice(last.expression.end, last.end).replace(/;\s*$/, '')}\n);`);
    }
  }

  // Is there nothing to it? TypeScript's compiler ends with `export {}`.
  drop(node) {
    const empty = node.type === 'EmptyStatement' || (node.type === 'ExportNamedDeclaration' && !node.declaration);
    if (empty) this.edit(node.start, node.end, ';');
    return empty;
  }

  edit(start, end, text) {
    this.edits.push([start, end, text]);
  }

  declare(node) {
    switch (node.type) {
      case 'VariableDeclaration': return this.variables(node);
      case 'FunctionDeclaration': return this.hoist(node);
      case 'ClassDeclaration':
        this.names.push(node.id.name);
        this.edit(node.start, node.start, `;${node.id.name} = `);
        return this.edit(node.end, node.end, ';');
      case 'ImportDeclaration': return this.import(node);
      case 'ExportNamedDeclaration':
        this.edit(node.start, node.declaration.start, '');
        return this.declare(node.declaration);
      case 'ExportDefaultDeclaration': {
        const inner = node.declaration;
        if (/Declaration$/.test(inner.type) && inner.id) {
          this.edit(node.start, inner.start, '');
          return this.declare(inner);
        }
        return this.edit(node.start, inner.start, ';globalThis.default_ = ');
      }
      case 'ExportAllDeclaration': return this.edit(node.start, node.end, '');
    }
  }

  variables(node) {
    const first = node.declarations[0], last = node.declarations[node.declarations.length - 1];
    this.edit(node.start, first.start, ';');
    for (const d of node.declarations) {
      names(d.id, this.names);
      this.edit(d.start, d.start, '(');
      // `var x;` leaves x as it was
      this.edit(d.end, d.end, d.init ? ')' : node.kind === 'var' ? ')' : ' = undefined)');
    }
    if (last.end === node.end) this.edit(node.end, node.end, ';'); // the next line may begin with a bracket
  }

  hoist(node) {
    this.functions.push([node.start, node.end]);
    this.edit(node.start, node.end, this.source.slice(node.start, node.end).replace(/[^\n]+/g, ''));
  }

  import(node) {
    const from = `await import(${JSON.stringify(node.source.value)})`;
    const parts = node.specifiers.map((s) => {
      this.names.push(s.local.name);
      if (s.type === 'ImportNamespaceSpecifier') return `${s.local.name} = m;`;
      const name = s.type === 'ImportDefaultSpecifier' ? 'default' : s.imported.name || s.imported.value;
      return `if (!(${JSON.stringify(name)} in m)) throw new SyntaxError(${JSON.stringify(
        `${node.source.value} has no export named ${name}`)}); ${s.local.name} = m[${JSON.stringify(name)}];`;
    });
    const lines = this.source.slice(node.start, node.end).replace(/[^\n]+/g, '');
    this.edit(node.start, node.end, `;{ const m = ${from}; ${parts.join(' ')} }${lines}`);
  }

  // The functions alone, each where it was.
  hoisted() {
    let text = '', at = 0;
    const blank = (end) => this.source.slice(at, end).replace(/[^\n]/g, ' ');
    for (const [start, end] of this.functions) {
      text += blank(start) + this.source.slice(start, end);
      at = end;
    }
    return text;
  }

  // An expression: a promise of the value.
  code() {
    let text = '', at = 0;
    const sorted = this.edits.map((e, i) => [...e, i]).sort((a, b) => a[0] - b[0] || a[1] - b[1] || a[3] - b[3]);
    for (const [start, end, put] of sorted) {
      text += this.source.slice(at, start) + put;
      at = end;
    }
    return `(async () => {${text}${this.source.slice(at)}\n})()`;
  }
}

// Of JavaScript, or of TypeScript if it is none.
exports.read = (source) => {
  try {
    return new Cell(source);
  } catch (error) {
    const plain = stripped(source);
    try {
      if (plain) return new Cell(plain);
    } catch {
      // the first error is about what was written
    }
    throw error;
  }
};
