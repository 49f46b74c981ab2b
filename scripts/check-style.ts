/**
 * Finds the patterns of the style guide in CONTRIBUTING.md.
 *
 *   npm run style                           fails where a room has more findings than its budget, and prints them
 *   npm run style -- PATH…                  prints all findings below these paths, those within the budget, too
 *   npm run style -- --lower                lowers each budget to the present number
 *   npm run style -- --measure              prints a table by room and by document
 *   npm run style -- --sample 50 [--seed 1] prints comments that a seed draws
 */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { commands } from '../src/cli/commands.ts';
import { beyondBudget, lowered, readBudget, writeBudget } from './style/budgets.ts';
import type { Finding } from './style/findings.ts';
import { helpFindings } from './style/help.ts';
import { measure, sample } from './style/measure.ts';
import { type StylePattern, stylePatterns } from './style/patterns.ts';
import { readSections, unresolvedReferences } from './style/references.ts';
import { kindsOf, partsOfDocument, partsOfSource, type TextPart, withoutMarks } from './style/texts.ts';
import { root } from './toolchain.mjs';

const sources = ['{src,machines,scripts,bench,test}/**/*.{ts,tsx,mjs,mts}', 'bin/*.js'];
const documents = ['*.md', 'docs/**/*.md', '.github/**/*.md'];
/** Cites only: neither holds sentences of its own. */
const others = ['{src,test,bench,scripts,deploy}/**/*.{json,css,sh,yaml,yml,html}'];
/** The table of patterns, its test and the guide, which quote forbidden words. */
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

function matches(file: string, { kind, content, line }: TextPart, text: string, rule: FlatRule): Finding[] {
  const { id, pattern, reason, instead } = rule;
  if (rule.scope === 'comment') {
    return pattern.test(withoutMarks(content).replace(/\s*\n\s*\*?\s*/g, ' '))
      ? [{ file, line, id, kind, reason, instead }]
      : [];
  }
  return [...text.matchAll(rule.flat)].map(({ 0: found, index }) => ({
    file,
    line: line + content.slice(0, index).split('\n').length - 1,
    id,
    kind,
    reason: `“${found.replaceAll('\u200b', '')}”: ${reason}`,
    instead,
  }));
}

/** The benches install their peers below bench/. */
const isInstalled = (path: string): boolean => path.endsWith('node_modules');

/** Texts of a checkout by file, without generated documents: their sources are searched. @param base its root */
function readTexts(base: string): Map<string, string> {
  const patterns = [...sources, ...documents, ...others];
  const files = new Set(patterns.flatMap((pattern) => globSync(pattern, { cwd: base, exclude: isInstalled })));
  const texts = [...files].toSorted().map((file) => [file, readFileSync(join(base, file), 'utf8')] as const);
  return new Map(texts.filter(([, text]) => !text.startsWith('<!-- Generated')));
}

/** All findings of a checkout. @param base its root */
export function checkStyle(base: string = root): Finding[] {
  const sections = readSections(base);
  const found = [...readTexts(base)].flatMap(([file, source]) => [
    ...findingsIn(file, source),
    ...(quoting.has(file) ? [] : unresolvedReferences(file, source, sections)),
  ]);
  return [...found, ...helpFindings(commands)];
}

const lineOf = ({ file, line, id, reason, instead }: Finding): string =>
  `${file}:${line}  ${id}: ${reason}; write: ${instead}`;

function main(): void {
  const { positionals: paths, values } = parseArgs({
    allowPositionals: true,
    options: {
      measure: { type: 'boolean' },
      lower: { type: 'boolean' },
      sample: { type: 'string' },
      seed: { type: 'string', default: '1' },
    },
  });
  const written = new Map([...readTexts(root)].filter(([file]) => !quoting.has(file)));
  if (values.sample !== undefined) {
    for (const comment of sample(written, Number(values.sample), Number(values.seed))) console.log(`${comment}\n`);
    return;
  }
  const findings = checkStyle();
  if (values.measure) console.log(measure(written, findings));
  else if (values.lower) writeBudget(lowered(readBudget(), findings));
  else {
    const problems = paths.length > 0 ? findingsBelow(paths, findings).map(lineOf) : problemsOf(findings);
    for (const problem of problems) console.error(problem);
    process.exitCode = problems.length === 0 ? 0 : 1;
  }
}

const findingsBelow = (paths: readonly string[], findings: readonly Finding[]): Finding[] =>
  findings.filter(({ file }) => paths.some((path) => file === path || file.startsWith(`${path.replace(/\/$/, '')}/`)));

const problemsOf = (findings: readonly Finding[]): string[] =>
  [...beyondBudget(findings, readBudget())].flatMap(([excess, found]) => [excess, ...found.map(lineOf)]);

if (process.argv[1]?.endsWith('check-style.ts')) main();
