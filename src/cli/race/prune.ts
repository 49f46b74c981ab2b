import { rm } from 'node:fs/promises';
import { sep } from 'node:path';
import * as v from 'valibot';
import type { AppServerClient } from '../../client/index.ts';
import { forksDirectories } from '../../config/index.ts';
import { runGit } from '../../git/index.ts';
import { count } from '../../lib/index.ts';
import type { CommandContext } from '../command.ts';
import { exitCodes } from '../exit-codes.ts';
import { inLine } from '../render.ts';
import { userWork } from './user-work.ts';

/** Names of the conversations of races begin with it. */
export const namePrefix = 'race: ';

const Threads = v.looseObject({
  data: v.array(
    v.looseObject({
      id: v.string(),
      displayName: v.optional(v.string(), ''),
      config: v.optional(
        v.looseObject({
          workspaceOverride: v.optional(v.string()),
          race: v.optional(v.looseObject({ endedAt: v.optional(v.string()) })),
        }),
        {},
      ),
      runtime: v.optional(v.looseObject({ running: v.boolean() })),
    }),
  ),
});

/** Number of attempts of earlier races without a result: their program ended during the race, or still runs. */
export async function countUnfinished(server: AppServerClient, { signal }: CommandContext): Promise<number> {
  const { data } = v.parse(Threads, await server.request('thread/list', {}, { signal }));
  return data.filter(({ config: { race } }) => race && race.endedAt === undefined).length;
}

/** Deletes the attempts of earlier races, with their directories. Keeps and names those with work of the user, unless `--force`. */
export async function prune(
  { output, env, options, signal }: CommandContext,
  server: AppServerClient,
  workspacePath: string,
): Promise<number> {
  const { data } = v.parse(Threads, await server.request('thread/list', { includeArchived: true }, { signal }));
  const places = forksDirectories(workspacePath).map((place) => place + sep);
  let pruned = 0;
  const kept: { readonly directory: string; readonly reason: string }[] = [];
  for (const { id, displayName, config, runtime } of data) {
    const { workspaceOverride: directory, race } = config;
    if (!displayName.startsWith(namePrefix)) continue;
    // An attempt that was not begun has no directory.
    if (directory === undefined ? !race : !places.some((place) => directory.startsWith(place))) continue;
    const reason =
      directory === undefined ? undefined : await userWork({ directory, endedAt: race?.endedAt, env, signal });
    if (directory !== undefined && reason !== undefined && options['force'] !== true) {
      kept.push({ directory, reason });
      continue;
    }
    const steps = [
      async () => directory !== undefined && (await rm(directory, { recursive: true, force: true })),
      () => server.request('thread/delete', { threadId: id }, { signal }),
    ];
    // A later call finds the directory by its conversation, which goes last. A turn that works there ends with it, before.
    for (const step of runtime?.running === true ? steps.reverse() : steps) await step();
    pruned += 1;
  }
  // Without a repository there is nothing to tidy.
  const tidy = { args: ['worktree', 'prune'], cwd: workspacePath, workspacePath, env };
  await runGit(tidy).catch(() => undefined);
  if (output.json) output.document({ pruned, kept });
  output.line(`Deleted ${count(pruned, 'attempt')}.`);
  for (const { directory, reason } of kept) output.line(`Kept ${inLine(directory)}: ${inLine(reason)}`);
  if (kept.length > 0) output.line('Save the work, or delete these attempts too: oratorio race --prune --force');
  return exitCodes.ok.code;
}
