/**
 * Finds what a program can find of the style guide in CONTRIBUTING.md.
 *
 *   node scripts/check-style.ts            prints all findings and fails if there are any
 *   node scripts/check-style.ts PATH…      prints all findings below these paths
 */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { commands } from '../src/cli/commands.ts';
import type { Finding } from './style/findings.ts';
import { helpFindings } from './style/help.ts';
import { type StylePattern, stylePatterns } from './style/patterns.ts';
import { readSections, unresolvedReferences } from './style/references.ts';
import { kindsOf, partsOfDocument, partsOfSource, type TextPart, withoutMarks } from './style/texts.ts';
import { root } from './toolchain.mjs';

const sources = ['{src,machines,scripts,bench,test}/**/*.{ts,tsx,mjs,mts}', 'bin/*.js'];
const documents = ['*.md', 'docs/**/*.md', '.github/**/*.md'];
/** Cites only: neither holds sentences of its own. */
const others = ['{src,test,bench,scripts,deploy}/**/*.{json,css,sh,yaml,yml,html}'];
/** The table of patterns, its test and the guide quote what must not be written. */
const quoting = new Set(['scripts/style/patterns.ts', 'test/scripts/check-style.test.ts', 'docs/glossary.md']);

interface FlatRule extends StylePattern {
  /** Finds all matches in a flat text. */
  readonly flat: RegExp;
}

const rules: readonly FlatRule[] = stylePatterns.map((rule) => {
  const { source, flags } = rule.pattern;
  const flat = new RegExp(source.replaceAll(' ', ' \u200b*'), flags.includes('g') ? flags : `${flags}g`);
  return { ...rule, flat };
});

/** Findings of one file. @param file from the root, which decides how it is read */
export function findingsIn(file: string, source: string): Finding[] {
  if (quoting.has(file)) return [];
  const isSource = /\.(?:tsx?|m[jt]s|js)$/.test(file);
  const parts = isSource ? partsOfSource(file, source) : file.endsWith('.md') ? partsOfDocument(source) : [];
  return parts.flatMap((part) => {
    const text = flatten(part);
    return rules.filter(({ scope }) => isApplied(scope, file, part)).flatMap((rule) => matches(file, part, text, rule));
  });
}

/** Strings of tests and benches are data, except for titles, which stand in their comments' place. */
function isApplied(scope: StylePattern['scope'], file: string, { kind }: TextPart): boolean {
  if (kind === 'text' && /^(?:test|bench)\//.test(file) && scope !== 'all') return false;
  return kindsOf[scope].includes(kind);
}

/** Text of a part in which a phrase may be broken between two lines of a comment. Each character keeps its place. */
function flatten({ kind, content }: TextPart): string {
  if (kind === 'code') return content;
  return content
    .replace(/\n([ \t]*(?:\*(?!\/)|\/\/)?)/g, (found) => ` ${' '.repeat(found.length - 1)}`)
    .replace(/ {2,}/g, (spaces) => ` ${'\u200b'.repeat(spaces.length - 1)}`);
}

function matches(file: string, { content, line }: TextPart, text: string, rule: FlatRule): Finding[] {
  const { id, pattern, reason, instead } = rule;
  if (rule.scope === 'comment') {
    return pattern.test(withoutMarks(content).replace(/\s*\n\s*\*?\s*/g, ' '))
      ? [{ file, line, id, reason, instead }]
      : [];
  }
  return [...text.matchAll(rule.flat)].map(({ 0: found, index }) => ({
    file,
    line: line + content.slice(0, index).split('\n').length - 1,
    id,
    reason: `“${found.replaceAll('\u200b', '')}”: ${reason}`,
    instead,
  }));
}

/** The benches install their peers below bench/. */
const isInstalled = (path: string): boolean => path.endsWith('node_modules');

/** All findings of a checkout. @param base its root */
export function checkStyle(base: string = root): Finding[] {
  const sections = readSections(base);
  const files = [
    ...new Set(
      [...sources, ...documents, ...others].flatMap((pattern) =>
        globSync(pattern, { cwd: base, exclude: isInstalled }),
      ),
    ),
  ];
  const found = files.toSorted().flatMap((file) => {
    const source = readFileSync(join(base, file), 'utf8');
    return [...findingsIn(file, source), ...(quoting.has(file) ? [] : unresolvedReferences(file, source, sections))];
  });
  return [...found, ...helpFindings(commands)];
}

const lineOf = ({ file, line, id, reason, instead }: Finding): string =>
  `${file}:${line}  ${id}: ${reason}; write: ${instead}`;

if (process.argv[1]?.endsWith('check-style.ts')) {
  const findings = checkStyle();
  const paths = process.argv.slice(2);
  const isAsked = ({ file }: Finding) =>
    paths.some((path) => file === path || file.startsWith(`${path.replace(/\/$/, '')}/`));
  const problems = (paths.length > 0 ? findings.filter(isAsked) : findings).map(lineOf);
  for (const problem of problems) console.error(problem);
  process.exitCode = problems.length === 0 ? 0 : 1;
}
