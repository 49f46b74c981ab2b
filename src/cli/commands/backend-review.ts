import { setTimeout as sleep } from 'node:timers/promises';
import * as v from 'valibot';
import { Repository, ReviewDraft, ReviewItem, ReviewRun } from '../../protocol/index.ts';
import type { CommandContext } from '../command.ts';
import { CliError, usageError } from '../errors.ts';
import { exitCodes } from '../exit-codes.ts';
import { during } from '../hub.ts';
import { inLine } from '../render.ts';
import { type BackendApi, backendApi } from './backend-api.ts';

const Items = v.object({ rows: v.array(ReviewItem) });
const Dispatched = v.object({ run: ReviewRun, isNew: v.boolean() });
const pollMs = 1_000;
const ends: ReadonlySet<ReviewRun['state']> = new Set(['done', 'failed', 'cancelled', 'superseded']);

/** `oratorio review <owner/name#number>`: has a pull request reviewed; the draft waits on the page. */
export async function run(context: CommandContext): Promise<number> {
  const { options, output } = context;
  const api = backendApi(context, 'review');
  const pull = pullOf(context.argument);
  const item = await findItem(api, pull);
  const focus = options['focus'];
  const dispatched = await api.post(
    `/items/${encodeURIComponent(item.itemId)}/dispatch`,
    { scope: options['full'] === true ? 'full' : 'incremental', ...(typeof focus === 'string' && { focus }) },
    Dispatched,
  );
  if (options['wait'] !== true) {
    if (output.json) output.document(dispatched);
    else output.line(`Review ${dispatched.run.runId} of ${pull.name}#${pull.number}: ${dispatched.run.state}`);
    return exitCodes.ok.code;
  }
  const ended = await during(context, 'Reviewing', () => untilEnd(context, api, dispatched.run));
  const draft = ended.draftId === undefined ? undefined : await api.get(`/review-drafts/${ended.draftId}`, ReviewDraft);
  if (output.json) output.document({ run: ended, ...(draft && { draft }) });
  else print(context, ended, draft);
  return ended.state === 'done' ? exitCodes.ok.code : exitCodes.failure.code;
}

interface Pull {
  readonly name: string;
  readonly number: number;
}

/** `owner/name#7`, or the address of the pull request. */
function pullOf(argument: string | undefined): Pull {
  const found = /^(?:https?:\/\/[^/]+\/)?([\w.-]+\/[\w.-]+)(?:#|\/pull\/)(\d{1,9})\/?$/.exec(argument ?? '');
  const [, name, number] = found ?? [];
  if (name === undefined) throw usageError('Name a pull request as owner/name#number.', 'review');
  return { name: name.toLowerCase(), number: Number(number) };
}

async function findItem(api: BackendApi, { name, number }: Pull): Promise<ReviewItem> {
  const sources = await api.get('/sources', v.array(Repository));
  const source = sources.find((each) => `${each.owner}/${each.name}`.toLowerCase() === name);
  if (!source)
    throw new CliError('failure', `${name} is not a repository of this backend.`, 'Add it to GitHub.Repositories.');
  const query = new URLSearchParams({ repository: source.repositoryKey, q: String(number), limit: '200' });
  const { rows } = await api.get(`/items?${query}`, Items);
  const item = rows.find((each) => each.number === number);
  if (!item)
    throw new CliError(
      'failure',
      `Pull request ${number} of ${name} is not known.`,
      'Sync now on the page, then again.',
    );
  return item;
}

async function untilEnd({ signal }: CommandContext, api: BackendApi, first: ReviewRun): Promise<ReviewRun> {
  let present = first;
  while (!ends.has(present.state)) {
    await sleep(pollMs, undefined, { signal });
    present = await api.get(`/runs/${encodeURIComponent(first.runId)}`, ReviewRun);
  }
  return present;
}

function print({ output }: CommandContext, { state, error }: ReviewRun, draft: ReviewDraft | undefined): void {
  const { bold, dim } = output.colors;
  output.line(error ? `${bold(state)}: ${error.message}` : bold(state));
  if (!draft) return;
  const { summary, findings, reviewedFiles, totalFiles, status } = draft;
  if (summary !== '') output.line(summary);
  for (const { severity, path, line, title } of findings) {
    output.line(inLine(`  ${severity.padEnd(8)} ${path}${line === undefined ? '' : `:${line}`}  ${title}`));
  }
  output.line(dim(`${findings.length} findings, ${reviewedFiles} of ${totalFiles} files; the draft is ${status}.`));
}
