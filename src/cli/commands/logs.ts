import { setTimeout as sleep } from 'node:timers/promises';
import type { CommandContext } from '../command.ts';
import { usageError } from '../errors.ts';
import { exitCodes } from '../exit-codes.ts';
import { withHubOf } from '../hub.ts';
import { logLevels } from '../log-levels.ts';
import { isWanted, type LogFilter, logLine, sinceTime } from '../log-lines.ts';
import { workspacePath } from '../workspace.ts';

const pollMs = 500;
/** Most bytes of a log in one answer of the Hub. */
const mostBytes = 1_048_576;

/**
 * Returns the part of `next`, a later tail of a log, that is new since `previous`. Without a shared part it returns all of
 * `next`, after a line that reports the gap.
 */
export function appended(previous: string, next: string): string {
  if (previous === '' || next === previous) return next === previous ? '' : next;
  if (next.startsWith(previous)) return next.slice(previous.length);
  // Both are tails of one text: the end of the earlier one is somewhere in the later one.
  const mark = previous.slice(-4_096);
  const at = next.lastIndexOf(mark);
  return at < 0 ? `\n… some output was missed …\n${next}` : next.slice(at + mark.length);
}

/** `oratorio logs [workspace]` */
export async function run(context: CommandContext): Promise<number> {
  const { options, output, signal } = context;
  const { filter, tail } = wishesOf(context);
  const path = workspacePath(context, context.argument);
  const stream = options['stdout'] === true ? 'stdout' : 'stderr';
  const show = (lines: readonly string[]) => {
    for (const line of lines) {
      if (output.json) output.raw(`${line}\n`);
      else output.line(logLine(line, output.colors));
    }
  };
  return withHubOf(context, path, async ({ hub }) => {
    // Asks first whether there is such a workspace: its log would be just empty otherwise.
    await hub.byWorkspace(path, { signal });
    let seen = await hub.logs(path, { stream, bytes: mostBytes, signal });
    const { lines, rest } = split(seen);
    const wanted = (each: string) => isWanted(each, filter);
    const isFollowing = options['follow'] === true;
    // The last line may still be written: its rest follows.
    const found = (isFollowing ? lines : [...lines, rest]).filter(wanted);
    show(tail === undefined ? found : found.slice(Math.max(0, found.length - tail)));
    if (!isFollowing) return exitCodes.ok.code;
    let begun = rest;
    while (!signal.aborted) {
      await sleep(pollMs, undefined, { signal }).catch(() => undefined);
      if (signal.aborted) break;
      const now = await hub.logs(path, { stream, signal }).catch((error: unknown) => {
        if (signal.aborted) return seen;
        throw error;
      });
      const fresh = split(begun + appended(seen, now));
      show(fresh.lines.filter(wanted));
      begun = fresh.rest;
      seen = now;
    }
    return exitCodes.ok.code;
  });
}

/** Whole lines, and the beginning of one that is being written. */
function split(text: string): { readonly lines: readonly string[]; readonly rest: string } {
  const lines = text.split('\n');
  return { lines: lines.slice(0, -1), rest: lines.at(-1) ?? '' };
}

/** @throws CliError usage */
function wishesOf({ options }: CommandContext): { readonly filter: LogFilter; readonly tail: number | undefined } {
  const { tail, since, level, grep } = options;
  if (typeof tail === 'string' && !/^\d{1,7}$/.test(tail)) {
    throw usageError(`--tail needs a number of lines, not ${tail}.`, 'logs');
  }
  const from = typeof since === 'string' ? sinceTime(since, Date.now()) : undefined;
  if (typeof since === 'string' && from === undefined) {
    throw usageError(`--since needs a span such as 10m or 2h, or a time, not ${since}.`, 'logs');
  }
  return {
    filter: { level: logLevels.find((each) => each === level), since: from, grep: patternOf(grep) },
    tail: typeof tail === 'string' ? Number(tail) : undefined,
  };
}

/** @throws CliError usage */
function patternOf(text: string | boolean | undefined): RegExp | undefined {
  if (typeof text !== 'string') return undefined;
  try {
    return new RegExp(text, 'i');
  } catch {
    throw usageError(`--grep needs a regular expression, not ${text}.`, 'logs');
  }
}
