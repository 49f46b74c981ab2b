import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { HubClient, type RecordAnswer } from '../../client/index.ts';
import { secretsIn } from '../../config/index.ts';
import { messageOf, redact } from '../../lib/index.ts';
import { type DoctorContext, type Finding, fail, type Seen, skip, type WithConfig } from './finding.ts';
import { hub } from './hub.ts';
import { browser, disk, home, http, list, node, sandbox, workspaceSandbox } from './machine.ts';
import { ModelChecks } from './model.ts';
import { places, pods } from './places.ts';
import { history, mcp, server, settings } from './workspace.ts';

/**
 * Checks the machine, the home, the Hub and workspaces. Reads only: nothing is started, changed or repaired.
 *
 * @param only canonical path of one workspace; undefined: all that the Hub knows
 * @param here checked, too, when it is a workspace
 * @returns findings as they come; secrets of the settings are taken out
 */
export async function* examine(
  context: DoctorContext,
  only: string | undefined,
  here: string | undefined,
): AsyncGenerator<Finding> {
  const secrets = new Set<string>();
  const shown = (workspace: string | null, { id, status, saw, where, next }: Seen): Finding => ({
    id,
    status,
    workspace,
    saw: redact(saw, [...secrets]),
    where,
    next,
  });
  const learn = (loaded: WithConfig | undefined) => {
    for (const secret of loaded ? secretsIn(loaded.config) : []) secrets.add(secret);
  };
  const user = settings(context, undefined);
  learn(user.loaded);
  const report = await hub(context, user.loaded);
  const machine: Seen[] = [
    node(),
    await http(),
    disk(context),
    ...home(context),
    ...list(context),
    ...user.findings,
    user.loaded ? await sandbox(context, user.loaded) : skip('machine.sandbox', 'the settings cannot be read'),
    user.loaded ? await places(context, user.loaded.config) : skip('machine.containers', 'the settings cannot be read'),
    ...(user.loaded ? await pods(context, user.loaded.config) : []),
    browser(context),
    ...report.findings,
  ];
  for (const seen of machine) yield shown(null, seen);
  const { records, problem } = await recordsOf(report.found, context);
  if (problem !== undefined) yield shown(null, fail('hub.list', problem, { next: 'oratorio hub status' }));
  const models = new ModelChecks(context);
  const known = records.map((record) => record.canonicalWorkspacePath);
  const isHere = here !== undefined && existsSync(join(here, '.oratorio', 'config.json'));
  const all = isHere ? [...new Set([...known, here])] : known;
  const paths = only === undefined ? all : [only];
  if (paths.length === 0) yield shown(null, skip('workspaces', 'the Hub knows none', { next: 'oratorio up --init' }));
  for (const path of paths) {
    const record = records.find((each) => each.canonicalWorkspacePath === path);
    const own = settings(context, path);
    learn(own.loaded);
    for (const seen of [...own.findings, ...server(record, path), ...history(context, record, path)])
      yield shown(path, seen);
    if (!own.loaded) continue;
    yield shown(path, await workspaceSandbox(context, own.loaded, path));
    yield shown(path, await models.check(own.loaded, path));
    for (const seen of await mcp(context, own.loaded, record, path)) yield shown(path, seen);
  }
}

async function recordsOf(
  found: Awaited<ReturnType<typeof hub>>['found'],
  { signal }: DoctorContext,
): Promise<{ readonly records: readonly RecordAnswer[]; readonly problem?: string }> {
  if (found.kind === 'none') return { records: [] };
  try {
    return { records: await new HubClient(found.lock).list({ signal }) };
  } catch (error) {
    signal.throwIfAborted();
    return { records: [], problem: messageOf(error) };
  }
}
