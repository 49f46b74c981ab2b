/** highlight.js with its languages. Loaded with the first code that is coloured. */
import hljs from 'highlight.js/lib/core';
import bash from 'highlight.js/lib/languages/bash';
import cpp from 'highlight.js/lib/languages/cpp';
import diff from 'highlight.js/lib/languages/diff';
import go from 'highlight.js/lib/languages/go';
import java from 'highlight.js/lib/languages/java';
import json from 'highlight.js/lib/languages/json';
import markdown from 'highlight.js/lib/languages/markdown';
import python from 'highlight.js/lib/languages/python';
import ruby from 'highlight.js/lib/languages/ruby';
import rust from 'highlight.js/lib/languages/rust';
import sql from 'highlight.js/lib/languages/sql';
import typescript from 'highlight.js/lib/languages/typescript';
import xml from 'highlight.js/lib/languages/xml';
import yaml from 'highlight.js/lib/languages/yaml';
import { type Colour, colourOf } from './colour-names.ts';
import type { LanguageName } from './language-names.ts';

type Grammar = Parameters<typeof hljs.registerLanguage>[1];

/** CSS without the names of all properties and elements, which make up most of the library's grammar. */
const css: Grammar = ({ C_BLOCK_COMMENT_MODE, APOS_STRING_MODE, QUOTE_STRING_MODE }) => ({
  name: 'CSS',
  contains: [
    ...[C_BLOCK_COMMENT_MODE, APOS_STRING_MODE, QUOTE_STRING_MODE],
    { scope: 'keyword', begin: /@[\w-]+|!important\b/ },
    { scope: 'selector-class', begin: /\.[a-z_-][\w-]*/i },
    { scope: 'selector-id', begin: /#[\w-]+/ },
    { scope: 'attribute', begin: /[\w-]+(?=\s*:\s)/ },
    { scope: 'number', begin: /-?\b\d[\w.]*%?/ },
  ],
});

const languages: Readonly<Record<LanguageName, Grammar>> = {
  ...{ bash, cpp, css, diff, go, java, json, markdown },
  ...{ python, ruby, rust, sql, typescript, xml, yaml },
};
for (const [name, language] of Object.entries(languages)) hljs.registerLanguage(name, language);

/** A stretch of one line in one colour. */
export interface Stretch {
  readonly text: string;
  readonly colour: Colour | null;
}

/** Collects the output of highlight.js as lines of stretches: nothing of it becomes HTML. */
class Lines {
  readonly lines: Stretch[][] = [[]];
  readonly #open: (Colour | null)[] = [];

  startScope(name: string): void {
    this.#open.push(colourOf(name));
  }

  endScope(): void {
    this.#open.pop();
  }

  /** The library uses this name, too. */
  openNode(name: string): void {
    this.startScope(name);
  }

  closeNode(): void {
    this.endScope();
  }

  addText(text: string): void {
    const colour = this.#open.at(-1) ?? null;
    for (const [index, part] of text.split('\n').entries()) {
      if (index > 0) this.lines.push([]);
      if (part !== '') this.lines.at(-1)?.push({ text: part, colour });
    }
  }

  /** Code of another language within this one. */
  __addSublanguage(inner: Lines): void {
    const [first = [], ...others] = inner.lines;
    this.lines.at(-1)?.push(...first);
    this.lines.push(...others);
  }

  finalize(): void {
    this.#open.length = 0;
  }

  toHTML(): string {
    return '';
  }
}
hljs.configure({ __emitter: Lines });

/** The lines of a code, coloured. Their texts, joined by line feeds, are the code. */
export function colouredLines(code: string, language: LanguageName): readonly (readonly Stretch[])[] {
  const { _emitter } = hljs.highlight(code, { language, ignoreIllegals: true });
  return _emitter instanceof Lines ? _emitter.lines : code.split('\n').map((text) => [{ text, colour: null }]);
}
