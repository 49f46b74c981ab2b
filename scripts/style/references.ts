/** Checks that each section sign leads to a heading below `docs/`. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Finding } from './findings.ts';

/** Documents with numbered sections, by the word that a reference names them with. */
const numbered: Readonly<Record<string, string>> = {
  specification: 'docs/specification.md',
  design: 'docs/design.md',
};

/** A section sign with its number, after the word that names the document or bare. */
const reference = /(?:\b(specification|design)(?:\.md)?\)?,?\s*)?\u00a7\s*(\d+[a-z]?(?:\.\d+)*)?/gi;

/** Numbers of the sections of the numbered documents, by the word that names the document. */
export type Sections = ReadonlyMap<string, ReadonlySet<string>>;

/** @param base root of the checkout */
export function readSections(base: string): Sections {
  return new Map(
    Object.entries(numbered).map(([word, file]) => {
      const headings = readFileSync(join(base, file), 'utf8').matchAll(/^#+ (\d+[a-z]?(?:\.\d+)*)\.? /gm);
      return [word, new Set([...headings].map(([, number = '']) => number))];
    }),
  );
}

/** References of a text that name no document or no section of it. A bare number belongs to the document named before it. */
export function unresolvedReferences(file: string, source: string, sections: Sections): Finding[] {
  if (!source.includes('\u00a7')) return [];
  const own = Object.entries(numbered).find(([, path]) => path === file)?.[0];
  return source.split('\n').flatMap((text, index) => {
    let document = own;
    return [...text.matchAll(reference)].flatMap(([found, word, number = '']): Finding[] => {
      document = word?.toLowerCase() ?? document;
      const isKnown = document !== undefined && sections.get(document)?.has(number);
      if (isKnown) return [];
      const reason = `“${found.trim()}” names no section of ${Object.values(numbered).join(' or ')}`;
      return [
        {
          file,
          line: index + 1,
          id: 'section',
          reason,
          instead: '“specification §4.2”; for an RFC “RFC 9110, section 9.2”',
        },
      ];
    });
  });
}
