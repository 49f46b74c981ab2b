/**
 * `npm run docs` writes the documents that are made from the machines, the schemas and the table of commands; with `--check` it writes nothing
 * and fails when one of them is stale, or has no source.
 */
import { existsSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, sep } from 'node:path';
import { cliReference } from '../src/cli/reference.ts';
import { agentDocument } from './agent-docs.ts';
import { appServerDocument } from './appserver-docs.ts';
import { architectureDocument } from './architecture-docs.ts';
import { configDocument } from './config-docs.ts';
import { deployFiles } from './deploy-files.ts';
import { renewDrawings, staleDrawings } from './drawings.ts';
import { hubApiDocument } from './hub-api-docs.ts';
import { machineDocuments, machinePictures } from './machine-docs.ts';
import { observabilityDocument } from './metrics-docs.ts';
import { providerDocument } from './provider-docs.ts';
import { reviewDocument } from './review-docs.ts';
import { storeSchema } from './store-schema.ts';
import { root } from './toolchain.mjs';

const isCheck = process.argv.includes('--check');
// Pictures in the documents are made from drawings.
if (!isCheck) await renewDrawings();

const documents = new Map([
  ...machineDocuments(),
  ...(await machinePictures()),
  ...deployFiles(),
  ['docs/agents.md', agentDocument()],
  ['docs/architecture.md', architectureDocument()],
  ['docs/cli.md', cliReference()],
  ['docs/hub-api.md', hubApiDocument()],
  ['docs/app-server-protocol.md', appServerDocument()],
  ['docs/configuration.md', await configDocument()],
  ['docs/observability.md', observabilityDocument()],
  ['docs/providers.md', providerDocument()],
  ['docs/review-backend.md', reviewDocument()],
  ['src/agent/store/schema.generated.json', storeSchema()],
]);
const strays = globSync('docs/machines/*', { cwd: root })
  .map((file) => file.split(sep).join('/'))
  .filter((file) => !documents.has(file));

/** First line in which a file differs from the expected text; null when none does. */
function firstDifference(file: string, expected: string): string | null {
  const path = join(root, file);
  if (!existsSync(path)) return 'is missing';
  const actual = readFileSync(path, 'utf8').replaceAll('\r\n', '\n');
  if (actual === expected) return null;
  const [had, has] = [actual.split('\n'), expected.split('\n')];
  const line = has.findIndex((text, index) => text !== had[index]);
  const at = line === -1 ? has.length : line;
  return `differs in line ${at + 1}:\n  - ${had[at] ?? '(end)'}\n  + ${has[at] ?? '(end)'}`;
}

function check(): boolean {
  const problems = [...documents].flatMap(([file, text]) => {
    const difference = firstDifference(file, text);
    return difference === null ? [] : [`${file} ${difference}`];
  });
  problems.push(...strays.map((file) => `${file} belongs to no machine`));
  const drawings = staleDrawings();
  problems.push(...drawings.machines.map((name) => `The drawings of ${name} are not of this version of it`));
  problems.push(...drawings.strays.map((name) => `The drawings of ${name} belong to no machine`));
  for (const problem of problems) console.error(problem);
  if (problems.length > 0) console.error('Run "npm run docs" and commit its output.');
  return problems.length === 0;
}

function write(): void {
  for (const [file, text] of documents) {
    const path = join(root, file);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  }
  for (const file of strays) rmSync(join(root, file));
}

if (!isCheck) write();
else if (!check()) process.exitCode = 1;
