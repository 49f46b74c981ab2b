import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'rolldown';
import t from 'tap';
import { releaseNotes } from '../../scripts/release/notes.ts';
import { root } from '../../scripts/toolchain.mjs';

const textOf = (path: string): string => readFileSync(join(root, path), 'utf8');
const workflows = globSync('.github/workflows/*.yml', { cwd: root });

/** Loads the parser of GitHub in one file: it imports JSON in a way that only bundlers accept. */
async function loadParser(directory: string): Promise<typeof import('@actions/workflow-parser')> {
  const file = join(directory, 'parser.mjs');
  const input = fileURLToPath(import.meta.resolve('@actions/workflow-parser'));
  await build({ input, platform: 'node', logLevel: 'silent', output: { file, format: 'esm' } });
  return import(file);
}

t.test('each workflow is valid, and a planted fault is found', async (t) => {
  const { convertWorkflowTemplate, NoOperationTraceWriter, parseWorkflow } = await loadParser(t.testdir());
  /** Faults that GitHub would report for a workflow. */
  const faultsOf = async (name: string, content: string): Promise<readonly string[]> => {
    const { context, value } = parseWorkflow({ name, content }, new NoOperationTraceWriter());
    if (value !== undefined && context.errors.getErrors().length === 0) await convertWorkflowTemplate(context, value);
    return context.errors.getErrors().map(({ message }) => message);
  };
  t.ok(workflows.length >= 3, workflows.join(' '));
  for (const path of workflows) t.strictSame(await faultsOf(path, textOf(path)), [], path);
  const text = textOf('.github/workflows/ci.yml');
  for (const [right, wrong] of [
    ['runs-on:', 'run-on:'],
    ['matrix.minutes }}', 'matrix.minutes ) }}'],
    ['runs-on: ubuntu-latest', 'needs: missing\n    runs-on: ubuntu-latest'],
  ] as const) {
    t.not((await faultsOf('planted.yml', text.replace(right, wrong))).length, 0, wrong);
  }
});

t.test('each action of a workflow is pinned by its digest and names its version', async (t) => {
  const uses = workflows.flatMap((path) => [...textOf(path).matchAll(/\buses: (.+)/g)].map(([, used = '']) => used));
  t.ok(uses.length > 5);
  for (const used of uses) t.match(used, /^(?:\.\/\S+|[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+)$/);
});

t.test('each npm script of a workflow exists, and its patterns choose each test file once', async (t) => {
  const { scripts } = JSON.parse(textOf('package.json')) as { readonly scripts: object };
  const commands = workflows.flatMap((path) => [...textOf(path).matchAll(/\bnpm (?:run ([\w:]+)|(test|start))/g)]);
  t.ok(commands.length > 5);
  for (const [command, name = '', short = ''] of commands) t.ok((name || short) in scripts, command);
  const patterns = new Set(
    [...textOf('.github/workflows/ci.yml').matchAll(/npm test -- '([^']+)'/g)].map(([, p = '']) => p),
  );
  const chosen = [...patterns].flatMap((pattern) => globSync(pattern, { cwd: root }));
  t.strictSame(chosen.sort(), globSync('test/**/*.test.ts', { cwd: root }).sort());
});

t.test('the notes of a release are the section of its version', async (t) => {
  const text =
    '# Changelog\n\n## Unreleased\n- new\n\n## 1.2.0 – 2026-12-01\n\n### Added\n- one\n\n## 1.2.0-rc.1\n- early\n\n## 1.1.0\n';
  t.equal(releaseNotes(text, '1.2.0'), '### Added\n- one\n');
  t.equal(releaseNotes(text, '1.2.0-rc.1'), '- early\n');
  t.equal(releaseNotes(text, 'Unreleased'), '- new\n');
  t.throws(() => releaseNotes(text, '1.1.0'), /no entries below "## 1.1.0"/);
  t.throws(() => releaseNotes(text, '1.2'), /no entries/);
});
