import { readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import * as v from 'valibot';
import { workspaceStateDirectory } from '../config/index.ts';
import { ensurePrivateDirectory, readJson, writeFileAtomic } from '../lib/index.ts';
import { createTokenFile, fileStamp, makeToken, readTokenFile, tokenShape, watchedToken } from './token-file.ts';

/** The token that opens the dashboards of one workspace, and those that it replaced. */
export interface DashboardTokens {
  readonly current: string;
  /** Tokens of earlier starts that a page may still exchange for the current one; the newest first. */
  readonly earlier: readonly string[];
}

const tokenName = 'dashboard.token';
const earlierName = 'dashboard.earlier.json';
/** How many earlier tokens are stored, and how long after its replacement one may be exchanged. */
const maxEarlier = 4;
const earlierMs = 3_600_000;

const Token = v.pipe(v.string(), v.regex(tokenShape));
const Earlier = v.array(v.object({ token: Token, replacedAt: v.number() }));
type Earlier = v.InferOutput<typeof Earlier>;

/** A start that a power cut interrupts is followed by another start, which makes another token. */
const perStart = { isFlushed: false };

/** File of the token that opens the dashboards of a workspace (0600), below the user's home. */
export const dashboardTokenFile = (home: string, canonicalPath: string): string =>
  join(workspaceStateDirectory(home, canonicalPath), tokenName);

/**
 * Reads the token that opens the dashboards of a workspace, or makes it (0600). Processes that ask at the same time get the
 * same one.
 *
 * @param home the user's home of Oratorio
 * @param canonicalPath real path of the workspace
 * @throws Error when it can be neither read nor written
 */
export function dashboardToken(home: string, canonicalPath: string): string {
  const directory = openDirectory(home, canonicalPath);
  return readTokenFile(join(directory, tokenName)) ?? createTokenFile(join(directory, tokenName));
}

/**
 * Replaces the token at the start of a workspace's agent server, which holds the workspace's lock. For one hour a page that is
 * open can exchange the earlier token.
 *
 * @param nowMs milliseconds since the epoch
 * @throws Error when it cannot be written
 */
export function rotateDashboardToken(home: string, canonicalPath: string, nowMs = Date.now()): void {
  removeUserWideToken(home);
  const directory = openDirectory(home, canonicalPath);
  const replaced = readTokenFile(join(directory, tokenName));
  const earlier = [
    ...(replaced === undefined ? [] : [{ token: replaced, replacedAt: nowMs }]),
    ...readEarlier(directory).filter((each) => isExchangeable(each, nowMs)),
  ];
  // Before the token itself: a crash between both leaves the current token listed twice, never an open page locked out.
  if (earlier.length > 0)
    writeFileAtomic(join(directory, earlierName), `${JSON.stringify(earlier.slice(0, maxEarlier))}\n`, perStart);
  writeFileAtomic(join(directory, tokenName), `${makeToken()}\n`, perStart);
}

/** Makes new tokens for all workspaces of a home: the old ones open nothing from now on, and cannot be exchanged. */
export function revokeDashboardTokens(home: string): void {
  removeUserWideToken(home);
  const parent = join(home, 'workspaces');
  for (const name of directoriesIn(parent)) {
    const directory = join(parent, name);
    rmSync(join(directory, earlierName), { force: true });
    if (statSync(join(directory, tokenName), { throwIfNoEntry: false }))
      writeFileAtomic(join(directory, tokenName), `${makeToken()}\n`);
  }
}

/** Returns a reader of the current token alone: each call checks one file. */
export const watchedDashboardToken = (home: string, canonicalPath: string): (() => string) =>
  watchedToken(dashboardTokenFile(home, canonicalPath), () => dashboardToken(home, canonicalPath));

/** Returns a reader of the current tokens: a change by another process holds at once. Each call checks both files. */
export function watchedDashboardTokens(home: string, canonicalPath: string): () => DashboardTokens {
  const current = dashboardToken(home, canonicalPath);
  const directory = workspaceStateDirectory(home, canonicalPath);
  let known = { current, earlier: readEarlier(directory) };
  let seen = stamp(directory);
  return () => {
    const now = stamp(directory);
    if (now !== seen) {
      known = { current: dashboardToken(home, canonicalPath), earlier: readEarlier(directory) };
      seen = stamp(directory);
    }
    const nowMs = Date.now();
    const earlier = known.earlier.filter((each) => isExchangeable(each, nowMs)).map(({ token }) => token);
    return { current: known.current, earlier: earlier.filter((token) => token !== known.current) };
  };
}

const isExchangeable = ({ replacedAt }: Earlier[number], nowMs: number): boolean =>
  nowMs - replacedAt < earlierMs && replacedAt <= nowMs + earlierMs;

/** Version 0.1.0 had one token for all workspaces of a user; it is accepted nowhere now. */
function removeUserWideToken(home: string): void {
  rmSync(join(home, tokenName), { force: true });
}

function openDirectory(home: string, canonicalPath: string): string {
  const directory = workspaceStateDirectory(home, canonicalPath);
  for (const each of [home, join(home, 'workspaces'), directory]) ensurePrivateDirectory(each);
  return directory;
}

function directoriesIn(parent: string): readonly string[] {
  try {
    return readdirSync(parent, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}

function readEarlier(directory: string): Earlier {
  const read = readJson(join(directory, earlierName), Earlier);
  return read.kind === 'ok' ? read.value : [];
}

/** Stamp that changes with either file; the tokens of a file that cannot be examined do not change. */
function stamp(directory: string): string {
  return `${fileStamp(join(directory, tokenName))} ${fileStamp(join(directory, earlierName))}`;
}
