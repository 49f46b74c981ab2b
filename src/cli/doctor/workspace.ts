import { existsSync } from 'node:fs';
import { join } from 'node:path';
import * as v from 'valibot';
import { AppServerClient, type RecordAnswer } from '../../client/index.ts';
import { ConfigError, isInitialised, loadConfig, workspaceStateDirectory } from '../../config/index.ts';
import { messageOf } from '../../lib/index.ts';
import {
  lastTurnWords,
  McpServerStatus,
  mcpLoginCommand,
  mcpToolProblemWords,
  modelWords,
  stateWordOf,
  toneOfState,
} from '../../protocol/index.ts';
import { emptiedHistory, lostHistory } from '../../supervise/index.ts';
import { quoted } from '../errors.ts';
import { clientInfo } from '../hub.ts';
import { type DoctorContext, fail, ok, type Seen, skip, type WithConfig, warn } from './finding.ts';

/**
 * Settings of a workspace, or of the user without one; a file that cannot be used is a finding. The workspace is not opened, which
 * would correct the rights of its directory.
 */
export function settings(
  { home, env }: DoctorContext,
  workspace: string | undefined,
): { readonly loaded?: WithConfig; readonly findings: readonly Seen[] } {
  const id = 'config';
  if (workspace !== undefined && !isInitialised(workspace, home)) {
    const next = existsSync(workspace) ? `oratorio init ${quoted(workspace)}` : null;
    return {
      findings: [
        fail(id, existsSync(workspace) ? 'it is not a workspace' : 'it does not exist', { where: workspace, next }),
      ],
    };
  }
  try {
    const loaded = loadConfig({ home, workspace, env });
    const warnings = loaded.warnings.map((text) => warn(id, text));
    const files = loaded.files.length === 0 ? 'the defaults' : loaded.files.join(', ');
    const trust = workspace === undefined ? [] : [trustIn(workspace, loaded.restrictedSettings)];
    return { loaded, findings: [ok(id, `settings can be read: ${files}`), ...warnings, ...trust] };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return { findings: [unreadable(error, workspace)] };
  }
}

function unreadable({ file, keyPath, expected, received }: ConfigError, workspace: string | undefined): Seen {
  const where = keyPath === '' ? file : `${file}: ${keyPath}`;
  const next =
    workspace === undefined ? 'Correct the file' : `Correct the file, then: oratorio restart ${quoted(workspace)}`;
  return fail('config', `must be ${expected}, but is ${received}`, { where, next });
}

function trustIn(workspace: string, restrictedSettings: readonly string[]): Seen {
  if (restrictedSettings.length === 0) return ok('trust', 'nothing is ignored');
  return warn('trust', `ignored until you agree: ${restrictedSettings.join(', ')}`, {
    where: join(workspace, '.oratorio', 'config.json'),
    next: `oratorio trust ${quoted(workspace)}`,
  });
}

/** Problems that other checks report from the current files. */
const checkedElsewhere: ReadonlySet<string> = new Set([
  'restricted',
  'invalidConfig',
  'configUnusable',
  'mcpServerDown',
  'mcpServerNeedsLogin',
  'mcpTool',
  'historyLost',
]);

const levels = { danger: fail, warn, progress: ok, ok, neutral: ok } as const;

/** State of the agent server in the words of the Hub, its number of restarts after failures, and each problem. */
export function server(record: RecordAnswer | undefined, workspace: string): readonly Seen[] {
  const id = 'server';
  if (!record) return [skip(id, 'no Hub reports about it', { next: `oratorio up ${quoted(workspace)}` })];
  const { restartCount, pid, lastTurn, failuresInARow, model } = record;
  const word = stateWordOf(record);
  const facts = [
    word,
    ...(pid === null ? [] : [`process ${pid}`]),
    ...(restartCount === 0 ? [] : [`restarted ${restartCount} times after failures`]),
    ...(model === null ? [] : [modelWords(model)]),
    ...(lastTurn === null ? [] : [`last turn: ${lastTurnWords(lastTurn, failuresInARow)}`]),
  ];
  const level = levels[toneOfState(word)];
  const problems = record.problems.filter(({ code }) => !checkedElsewhere.has(code));
  const reported = problems.map(({ code, what, where, next }) =>
    (level === fail ? fail : warn)(`${id}.${code}`, what, { where, next }),
  );
  const next = `oratorio logs ${quoted(workspace)}`;
  const isRestarted = level === ok && restartCount > 0;
  return [(isRestarted ? warn : level)(id, facts.join(', '), { next }), ...reported];
}

/** Loss of the workspace's history, as its files show it. */
export function history({ home }: DoctorContext, record: RecordAnswer | undefined, workspace: string): readonly Seen[] {
  const directory = workspaceStateDirectory(home, workspace);
  const isAtRest = record === undefined || record.pid === null;
  const lost = (isAtRest ? emptiedHistory(directory) : undefined) ?? lostHistory(directory);
  return lost === undefined ? [] : [warn('history', lost.what, { where: lost.where, next: lost.next })];
}

const McpAnswer = v.object({ data: v.array(v.looseObject(McpServerStatus.entries)) });

/** MCP servers as the running agent server reports them. */
export async function mcp(
  { signal }: DoctorContext,
  { config }: WithConfig,
  record: RecordAnswer | undefined,
  workspace: string,
): Promise<readonly Seen[]> {
  const id = 'mcp';
  const configured = Object.keys(config.McpServers);
  if (configured.length === 0) return [ok(id, 'none is configured')];
  const url = record?.endpoints['appServerWebSocket'];
  if (url === undefined) return [skip(id, `${configured.join(', ')}: the agent server does not run`)];
  try {
    const connection = await AppServerClient.connect(url, { clientInfo, signal });
    try {
      const { data } = v.parse(McpAnswer, await connection.request('mcp/status/list', {}, { signal }));
      return data.map(({ name, startupState, lastError, toolCount, toolProblems = [] }) => {
        const facts = `${startupState}, ${toolCount} tools`;
        const where = `McpServers.${name}`;
        if (startupState === 'needsLogin') {
          const next = `${mcpLoginCommand(name)} --workspace ${quoted(workspace)}`;
          return fail(`${id}.${name}`, 'it wants you to log in', { where, next });
        }
        if (startupState !== 'failed' && toolProblems.length === 0) return ok(`${id}.${name}`, facts);
        if (startupState !== 'failed') {
          const problems = toolProblems.map(mcpToolProblemWords).join(' ');
          return warn(`${id}.${name}`, `${facts}; ${problems}`, { where, next: null });
        }
        return fail(`${id}.${name}`, lastError ?? 'it cannot be started', { where, next: null });
      });
    } finally {
      connection.close();
    }
  } catch (error) {
    signal.throwIfAborted();
    return [skip(id, `the agent server does not answer: ${messageOf(error)}`)];
  }
}
