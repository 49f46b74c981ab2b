import { anchorFinding, type DiffFile, parseDiff } from '../src/review/anchors/index.ts';
import { type Benchmark, type Context, median, type Result } from './harness.ts';

const files = 3_000;
const hunks = 5;
const findings = 200;

/** Text of file `file` at line `line` of the head. */
const lineOf = (file: number, line: number): string => `  const value${line} = compute(${file}, ${line});`;

/** Output of `git diff` for many files, each changed in several places. */
function diffOf(count: number): string {
  const parts: string[] = [];
  for (let file = 0; file < count; file += 1) {
    const name = `src/module-${file % 50}/file-${file}.ts`;
    parts.push(`diff --git a/${name} b/${name}`, 'index 1111111..2222222 100644', `--- a/${name}`, `+++ b/${name}`);
    for (let hunk = 0; hunk < hunks; hunk += 1) {
      const at = 1 + hunk * 40;
      const context = (from: number) => [0, 1, 2].map((line) => ` ${lineOf(file, from + line)}`);
      parts.push(`@@ -${at},9 +${at},9 @@`, ...context(at));
      parts.push(
        ...[3, 4, 5].map((line) => `-  old${at + line}();`),
        ...[3, 4, 5].map((line) => `+${lineOf(file, at + line)}`),
      );
      parts.push(...context(at + 6));
    }
  }
  return `${parts.join('\n')}\n`;
}

/** Anchors findings all over the diff. Throws when one is not at its line. */
function anchorAll(parsed: readonly DiffFile[]): void {
  for (let index = 0; index < findings; index += 1) {
    const file = Math.floor((index * parsed.length) / findings);
    const line = 1 + (index % hunks) * 40 + 3;
    const path = parsed[file]?.path ?? '';
    const oldText = `${lineOf(file, line)}\n${lineOf(file, line + 1)}`;
    const result = anchorFinding(parsed, { path, oldText, newText: '  changed();' }, () => null);
    const anchor = 'anchor' in result ? result.anchor : undefined;
    if (anchor?.placement !== 'inline' || anchor.line !== line + 1 || anchor.startLine !== line) {
      throw new Error(`Finding ${index} of ${path} is not at line ${line}: ${JSON.stringify(result)}`);
    }
  }
}

function timed<T>(work: () => T): { readonly ms: number; readonly value: T } {
  const from = performance.now();
  const value = work();
  return { ms: performance.now() - from, value };
}

async function run({ rounds }: Context): Promise<Result> {
  const text = diffOf(files);
  const found: { parse: number; anchor: number; split: number }[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const split = timed(() => text.split('\n').map((line) => line.slice(1)));
    const parse = timed(() => parseDiff(text));
    if (parse.value.length !== files) throw new Error(`${parse.value.length} of ${files} files`);
    const anchor = timed(() => anchorAll(parse.value));
    found.push({ parse: parse.ms, anchor: anchor.ms, split: split.ms });
  }
  const of = (key: 'parse' | 'anchor' | 'split') => median(found.map((each) => each[key]));
  const whole = of('parse') + of('anchor');
  return {
    tables: [
      {
        title: `A diff of ${files} files, ${(text.length / 1_048_576).toFixed(1)} MiB, ${findings} findings`,
        columns: ['', 'ms', 'MiB/s'],
        rows: [
          ['the text parted into lines, for comparison', of('split'), text.length / 1_048.576 / of('split')],
          ['read', of('parse'), text.length / 1_048.576 / of('parse')],
          ['findings anchored', of('anchor'), ''],
        ],
      },
    ],
    checks: [{ what: 'read and anchored', measured: whole, atMost: 1_000, unit: ' ms' }],
    notes: ['Every finding was checked to be at its line.'],
  };
}

export const reviewAnchors: Benchmark = { name: 'review-anchors', title: 'Findings anchored in a large diff', run };
