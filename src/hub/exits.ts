import { closeSync, writeSync } from 'node:fs';
import * as v from 'valibot';
import type { AgentServerEmitted } from '../../machines/index.ts';
import { secretsIn, usableConfig } from '../config/index.ts';
import { makeDirectory, openToAppend, redact, visible } from '../lib/index.ts';
import { createLogger, type Fields } from '../log/index.ts';
import { maxExitText, type ServerExit } from '../protocol/index.ts';
import { logFiles, readTail } from '../supervise/index.ts';
import type { HubServices, WorkspaceFacts } from './facts.ts';
import { withoutTokens } from './mask.ts';
import { recentStderr } from './record.ts';
import { sizeOf } from './workspace-files.ts';

/** Name of the Hub's own lines in the log of an agent server. */
const author = 'hub';
/** Bytes at the end of a log in which to search for the last line of a process. */
const lastLineBytes = 4_096;

/** Writes a line of the Hub into the log of an agent server. @returns its position; null if writing failed */
function writeLine(hub: HubServices, facts: WorkspaceFacts, message: string, fields: Fields): ServerExit['log'] {
  const file = logFiles(facts.logDirectory).stderr;
  try {
    makeDirectory(facts.logDirectory, 0o700);
    const offset = sizeOf(file);
    const log = openToAppend(file);
    const line = createLogger({
      ...{ name: author, level: 'info', pretty: false },
      stream: { write: (text) => writeSync(log, text) },
    });
    for (const secret of facts.secrets) line.protect(secret);
    line.info(message, fields);
    closeSync(log);
    return { file, offset };
  } catch (error) {
    hub.logger.warn('could not write to the log of an agent server', { file, error });
    return null;
  }
}

/** Logs that a process is about to start. */
export function logStart(hub: HubServices, facts: WorkspaceFacts): void {
  writeLine(hub, facts, 'the Hub starts the agent server', { incarnation: facts.marker });
}

type Exited = Extract<AgentServerEmitted, { type: 'appserver.exited' }>;

/** Stores the end of an agent server, or a failed start, and logs it. @param isOurs whether its output is in our log */
export function recordExit(
  hub: HubServices,
  facts: WorkspaceFacts,
  { pid, exitCode, signal, cause, error, stopReason }: Exited,
  isOurs: boolean,
): void {
  const now = Date.now();
  const began = Date.parse(facts.stored.lastStartedAt ?? '');
  const isSeen = pid !== null && facts.stderrFrom !== null;
  const livedMs = isSeen && began <= now ? now - began : null;
  const { home, environment: env } = hub;
  const settings = usableConfig({ home, workspace: facts.stored.canonicalWorkspacePath, env });
  const secrets = [...facts.secrets, ...secretsIn(settings)];
  const bounded = (text: string) => redact(withoutTokens(text), secrets).slice(0, maxExitText).toWellFormed();
  // Read before the Hub adds its own line.
  facts.lastStderr = recentStderr(facts);
  const lastLine =
    pid !== null && isOurs ? lastLineOf(readTail(logFiles(facts.logDirectory).stderr, lastLineBytes)) : null;
  const reason = error === null ? null : bounded(error);
  const log = writeLine(
    hub,
    facts,
    pid === null ? 'the agent server could not be started' : 'the agent server has ended',
    {
      ...{ pid, livedMs, exitCode, signal },
      ...(stopReason === null ? { error: reason } : { stopReason }),
    },
  );
  facts.exits.add({
    ...{ at: new Date(now).toISOString(), pid, livedMs, exitCode, signal, stopReason, error: reason },
    ...(cause !== undefined && { cause: bounded(cause) }),
    lastLine: lastLine === null ? null : bounded(lastLine),
    log,
  });
}

const LogLine = v.pipe(v.string(), v.parseJson(), v.looseObject({ name: v.string(), msg: v.string() }));

/** Last line that a process wrote; for a log record, its message. */
function lastLineOf(text: string): string | null {
  for (const line of text.split('\n').reverse()) {
    if (line.trim() === '') continue;
    const record = v.safeParse(LogLine, line);
    if (!record.success) return visible(line.trim(), { multiline: false });
    if (record.output.name !== author) return visible(record.output.msg, { multiline: false });
  }
  return null;
}
