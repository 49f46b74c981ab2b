import {
  AppServerSilentError,
  HubInvalidResponseError,
  HubRequestError,
  HubUnavailableError,
  JsonRpcError,
  TurnFailedError,
} from '../client/index.ts';
import { DeployError, deployErrors } from '../deploy/index.ts';
import { messageOf } from '../lib/index.ts';
import { type HubErrorBody, missingRoute, rpcErrors } from '../protocol/index.ts';
import { CliError, quoted } from './errors.ts';
import { type ExitName, exitCodes } from './exit-codes.ts';
import { connectHint } from './remote.ts';

/** A failure for people (`what`, `hint`) and for programs (`exitCode`, `body` in the shape of specification §2.7). */
export interface Failure {
  readonly exitCode: number;
  readonly what: string;
  readonly hint: string | null;
  /** Further lines for people: the end of a log. */
  readonly context: string;
  readonly body: HubErrorBody;
}

const exitByHubCode: Readonly<Record<string, ExitName>> = {
  workspaceNotFound: 'workspaceNotFound',
  workspaceLocked: 'workspaceLocked',
  appServerStartFailed: 'startFailed',
  appServerUnhealthy: 'startFailed',
  portUnavailable: 'startFailed',
  placeUnavailable: 'startFailed',
  imageMissing: 'startFailed',
  placeRefused: 'startFailed',
  hubStopping: 'hubUnavailable',
};

/** The Hub stops and restarts only the servers that it manages: the user must end another server that holds the lock. */
function lockedHint({ pid, lockPath }: Readonly<Record<string, unknown>>): string {
  if (typeof pid === 'number') return `Stop it where it was started, or end it: kill ${pid}`;
  // The record of the owner is beside the locked file.
  const mutexPath = typeof lockPath === 'string' && lockPath.replace(/appserver\.lock$/, 'appserver.mutex');
  const file = mutexPath === false ? '<workspace>/.oratorio/appserver.mutex' : quoted(mutexPath);
  return `Find the process that holds the lock, then end it: fuser ${file}`;
}

/** Next step after a failed turn. */
function turnHint({ reason, retryAfterMs, message }: TurnFailedError): string | null {
  if (retryAfterMs !== null)
    return `The provider asks to wait ${durationText(retryAfterMs)}: run the command again then.`;
  switch (reason) {
    case 'upstreamUnauthorized':
      // The message names the remedy if the file of the key is known.
      return message.includes(': oratorio ') ? null : 'The provider refuses the key. Connect again: oratorio login';
    case 'upstreamQuotaExceeded':
      return 'The account has no credit left. Add some at the provider, or connect another one: oratorio login';
    case 'upstreamRateLimited':
      return 'The provider limits requests: run the command again in a minute.';
    case 'upstreamUnreachable':
    case 'upstreamRejected':
      return 'Check endpoint and model: oratorio model test';
    default:
      return null;
  }
}

/** Units with the seconds from which on they are used, the longest first. */
const units = [
  ['days', 86_400, 2 * 86_400],
  ['h', 3_600, 2 * 3_600],
  ['min', 60, 120],
  ['s', 1, 0],
] as const;

/** `3 days`, `2 min`, `45 s`; rounded up, so that it is not too early. */
function durationText(ms: number): string {
  const seconds = Math.ceil(ms / 1_000);
  const [unit, length] = units.find(([, , from]) => seconds >= from) ?? units[3];
  return `${Math.ceil(seconds / length)} ${unit}`;
}

/** Next step for a path that leads to nothing. The Hub names the new place of a workspace that it knows: null, when it found none. */
function goneHint(workspace: string, details: HubRequestError['details']): string {
  const movedTo = details?.['movedTo'];
  if (movedTo === undefined) return `Correct the path, or make it a workspace: oratorio init ${quoted(workspace)}`;
  const use = typeof movedTo === 'string' ? `Use it there: oratorio up ${quoted(movedTo)}. ` : '';
  return `${use}To remove the old path from the list: oratorio stop ${quoted(workspace)}`;
}

function hintFor({ code, details, message }: HubRequestError): string | null {
  const workspace = typeof details?.['workspacePath'] === 'string' ? details['workspacePath'] : '<workspace>';
  switch (code) {
    case 'workspaceNotFound':
      // The Hub names the command where the directory is there.
      if (message.includes(': oratorio init ')) return null;
      return goneHint(workspace, details);
    case 'workspaceLocked':
      // The Hub already names the next step for an unusable lock.
      return message.endsWith('Remove it, then start again.') ? null : lockedHint(details ?? {});
    case 'appServerStartFailed':
    case 'appServerUnhealthy':
      return `See its log: oratorio logs ${quoted(workspace)}`;
    case 'unauthorized':
      return 'The Hub was restarted meanwhile: run the command again.';
    case 'hubStopping':
      return 'The Hub is shutting down: run the command again in a moment.';
    case 'hostUnreachable':
      return typeof details?.['host'] === 'string' ? connectHint(details['host'], details['state']) : null;
    case 'notFound':
      return message === missingRoute
        ? 'The Hub is of an earlier version. Replace it: oratorio hub stop --detach && oratorio up'
        : null;
    case 'invalidConfig':
      return 'Correct the file that is named, then run the command again.';
    default:
      return null;
  }
}

const body = (
  code: string,
  message: string,
  details: Readonly<Record<string, unknown>> | null = null,
): HubErrorBody => ({
  error: { code, message, details },
});

/** Describes anything that was thrown. */
export function explain(error: unknown): Failure {
  if (error instanceof CliError) {
    const { exit, message, hint, code, details } = error;
    return { exitCode: exitCodes[exit].code, what: message, hint, context: '', body: body(code, message, details) };
  }
  if (error instanceof DeployError) {
    const { code, message, hint } = error;
    return {
      exitCode: exitCodes[deployErrors[code]].code,
      what: message,
      hint,
      context: '',
      body: body(code, message),
    };
  }
  if (error instanceof HubRequestError) {
    const { code, message, details } = error;
    const exitCode = exitCodes[exitByHubCode[code] ?? 'failure'].code;
    const stderr = typeof details?.['recentStderr'] === 'string' ? details['recentStderr'] : '';
    return { exitCode, what: message, hint: hintFor(error), context: stderr, body: body(code, message, details) };
  }
  if (error instanceof HubUnavailableError || error instanceof HubInvalidResponseError) {
    const context = error instanceof HubUnavailableError ? error.logTail : '';
    const hint = 'Run `oratorio hub` to see the Hub start, or `oratorio hub status` to see its state.';
    const isTaken = error instanceof HubUnavailableError && error.exitCode === exitCodes.precondition.code;
    const exitCode = exitCodes[isTaken ? 'precondition' : 'hubUnavailable'].code;
    return { exitCode, what: error.message, hint, context, body: body(error.code, error.message) };
  }
  if (error instanceof AppServerSilentError) {
    const hint = 'See its state with `oratorio inspect`, or start it afresh with `oratorio restart`.';
    return {
      exitCode: exitCodes.failure.code,
      what: error.message,
      hint,
      context: '',
      body: body(error.code, error.message),
    };
  }
  const message = messageOf(error);
  if (error instanceof TurnFailedError) {
    const hint = turnHint(error);
    const { reason, code, retryAfterMs } = error;
    const details = retryAfterMs === null ? null : { retryAfterMs };
    return {
      exitCode: exitCodes.failure.code,
      what: message,
      hint,
      context: '',
      body: body(reason ?? code, message, details),
    };
  }
  const code = error instanceof JsonRpcError ? `rpc${error.code}` : 'failure';
  const isBusy = error instanceof JsonRpcError && error.code === rpcErrors.turnInProgress.code;
  const hint = isBusy ? 'Wait until it ends, or interrupt it on the page: oratorio inspect . --open' : null;
  return { exitCode: exitCodes.failure.code, what: message, hint, context: '', body: body(code, message) };
}
