import { execFile, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { bearer, permits, tokenOf } from './auth.ts';
import type { Forge } from './forge.ts';
import type { ForgeFile } from './model.ts';

const run = promisify(execFile);
const author = { name: 'Ada', email: 'ada@example.test', date: '2026-01-01T00:00:00Z' };
const environment = {
  PATH: process.env['PATH'] ?? '/usr/bin:/bin',
  HOME: '/nonexistent',
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_AUTHOR_NAME: author.name,
  GIT_AUTHOR_EMAIL: author.email,
  GIT_AUTHOR_DATE: author.date,
  GIT_COMMITTER_NAME: author.name,
  GIT_COMMITTER_EMAIL: author.email,
  GIT_COMMITTER_DATE: author.date,
};

/** @returns what git printed, without the last line end */
export async function git(
  directory: string,
  args: readonly string[],
  more: Readonly<Record<string, string>> = {},
): Promise<string> {
  const options = { env: { ...environment, ...more }, maxBuffer: 64 * 1_024 * 1_024 };
  const { stdout } = await run('git', ['--git-dir', directory, ...args], options);
  return stdout.replace(/\n$/, '');
}

export async function createBare(directory: string): Promise<void> {
  await run('git', ['init', '--quiet', '--bare', '--initial-branch=main', directory], { env: environment });
  for (const [key, value] of [
    ['uploadpack.allowFilter', 'true'],
    ['uploadpack.allowAnySHA1InWant', 'true'],
    ['http.receivepack', 'false'],
  ] as const) {
    await git(directory, ['config', key, value]);
  }
}

async function hashObject(directory: string, content: string): Promise<string> {
  const child = spawn('git', ['--git-dir', directory, 'hash-object', '-w', '--stdin'], {
    env: environment,
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  child.stdin.end(content);
  let text = '';
  for await (const chunk of child.stdout) text += String(chunk);
  return text.trim();
}

/** One commit on `branch` with these files changed (null: deleted); without a working tree. @returns its SHA */
export async function commitFiles(
  directory: string,
  branch: string,
  files: Readonly<Record<string, string | null>>,
  { from = branch, message = 'A change' }: { readonly from?: string; readonly message?: string } = {},
): Promise<string> {
  const temporary = mkdtempSync(join(tmpdir(), 'oratorio-forge-index-'));
  const index = { GIT_INDEX_FILE: join(temporary, 'index') };
  try {
    const parent = await git(directory, ['rev-parse', '--verify', '--quiet', `refs/heads/${from}`]).catch(
      () => undefined,
    );
    if (parent) await git(directory, ['read-tree', parent], index);
    for (const [path, content] of Object.entries(files)) {
      if (content === null) await git(directory, ['update-index', '--force-remove', path], index);
      else {
        const blob = await hashObject(directory, content);
        await git(directory, ['update-index', '--add', '--cacheinfo', `100644,${blob},${path}`], index);
      }
    }
    const tree = await git(directory, ['write-tree'], index);
    const commit = await git(directory, ['commit-tree', tree, ...(parent ? ['-p', parent] : []), '-m', message]);
    await git(directory, ['update-ref', `refs/heads/${branch}`, commit]);
    return commit;
  } finally {
    rmSync(temporary, { recursive: true, force: true });
  }
}

const statuses: Readonly<Record<string, string>> = { A: 'added', M: 'modified', D: 'removed', R: 'renamed' };

/** Files as in the files API: compared with three dots, as GitHub does. */
export async function changedFiles(directory: string, base: string, head: string): Promise<ForgeFile[]> {
  const names = (await git(directory, ['diff', '--name-status', '-z', '-M', `${base}...${head}`])).split('\0');
  const files: ForgeFile[] = [];
  for (let at = 0; at + 1 < names.length; ) {
    const letter = (names[at] ?? '').slice(0, 1);
    const width = letter === 'R' ? 3 : 2;
    const paths = names.slice(at + 1, at + width);
    const filename = paths.at(-1) ?? '';
    const diff = await git(directory, ['diff', '-M', `${base}...${head}`, '--', ...paths]);
    const start = diff.search(/^@@ /m);
    files.push({ filename, status: statuses[letter] ?? 'changed', ...(start >= 0 && { patch: diff.slice(start) }) });
    at += width;
  }
  return files;
}

/** Git over HTTP, by git's own CGI program; the token as GitHub wants it: basic, user `x-access-token`. */
export function serveGit(forge: Forge, request: IncomingMessage, response: ServerResponse): void {
  const url = new URL(request.url ?? '/', 'http://forge.test');
  const [, owner = '', name = ''] = /^\/([^/]+)\/([^/]+)\.git\//.exec(url.pathname) ?? [];
  const repo = forge.repository(owner, name);
  if (!isAllowed(forge, request, repo?.id)) {
    response.writeHead(401, { 'www-authenticate': 'Basic realm="GitHub"' }).end('Authentication required');
    return;
  }
  if (!repo?.gitDirectory) {
    response.writeHead(404).end('Repository not found');
    return;
  }
  const cgi = spawn('git', ['http-backend'], {
    env: {
      ...environment,
      GIT_PROJECT_ROOT: repo.gitDirectory,
      GIT_HTTP_EXPORT_ALL: '1',
      PATH_INFO: url.pathname.slice(`/${owner}/${name}.git`.length),
      QUERY_STRING: url.search.slice(1),
      REQUEST_METHOD: request.method ?? 'GET',
      CONTENT_TYPE: request.headers['content-type'] ?? '',
      HTTP_CONTENT_ENCODING: request.headers['content-encoding'] ?? '',
      ...(request.headers['content-length'] && { CONTENT_LENGTH: request.headers['content-length'] }),
      GIT_PROTOCOL: String(request.headers['git-protocol'] ?? ''),
      REMOTE_ADDR: '127.0.0.1',
    },
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  forge.children.add(cgi);
  cgi.on('close', () => forge.children.delete(cgi));
  cgi.on('error', () => response.destroy());
  // The client has disconnected: `close` of the response ends the program.
  cgi.stdin.on('error', () => response.destroy());
  response.on('close', () => cgi.kill());
  request.pipe(cgi.stdin);
  passOn(cgi.stdout, response);
}

function isAllowed(forge: Forge, request: IncomingMessage, repository: number | undefined): boolean {
  const [, encoded = ''] = /^basic (.+)$/i.exec(request.headers.authorization ?? '') ?? [];
  const [user = '', ...password] = Buffer.from(encoded, 'base64').toString().split(':');
  if (user !== 'x-access-token') return false;
  try {
    const { repositories, permissions } = tokenOf(forge, bearer(`token ${password.join(':')}`));
    const isNamed = repositories === undefined || (repository !== undefined && repositories.includes(repository));
    return isNamed && permits(permissions['contents'], 'read');
  } catch {
    return false;
  }
}

/** Headers first, then a body of any length (RFC 3875, section 6). */
function passOn(output: NodeJS.ReadableStream, response: ServerResponse): void {
  let head: Buffer | undefined = Buffer.alloc(0);
  output.on('data', (chunk: Buffer) => {
    if (head === undefined) {
      response.write(chunk);
      return;
    }
    head = Buffer.concat([head, chunk]);
    const end = head.indexOf('\r\n\r\n');
    if (end < 0) return;
    const fields = head
      .subarray(0, end)
      .toString()
      .split('\r\n')
      .map((line) => line.split(/:\s*(.*)/s));
    const status = Number(fields.find(([field]) => field?.toLowerCase() === 'status')?.[1]?.slice(0, 3) ?? 200);
    for (const [field = '', value = ''] of fields)
      if (field.toLowerCase() !== 'status') response.setHeader(field, value);
    response.writeHead(status);
    response.write(head.subarray(end + 4));
    head = undefined;
  });
  output.on('end', () => {
    if (head !== undefined) response.writeHead(500);
    response.end();
  });
}
