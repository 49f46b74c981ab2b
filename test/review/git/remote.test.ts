import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { GitError, type ReviewGit } from '../../../src/review/git/index.ts';
import { Lab, put, type Story } from './helpers.ts';
import { HttpRemote } from './http-remote.ts';

const token = 'ghs_S3cretTokenThatMustNotBeSeen0123456789';
const encoded = Buffer.from(`x-access-token:${token}`).toString('base64');

interface Scene {
  readonly lab: Lab;
  readonly remote: HttpRemote;
  readonly story: Story;
  readonly reviews: ReviewGit;
}

async function scene(t: Test, limits = {}): Promise<Scene> {
  const lab = new Lab(t);
  const story = lab.begin();
  lab.copy();
  const remote = await HttpRemote.start(t, join(lab.directory, 'forge'));
  const reviews = await lab.open({ gitEndpoint: remote.endpoint, allowFileProtocol: false, limits });
  return { lab, remote, story, reviews };
}

const withToken = { token: async () => token };

/** The failure of `work`; a test that sees none fails. */
async function failure(work: Promise<unknown>): Promise<GitError> {
  const error = await work.then(
    () => null,
    (reason: unknown) => reason,
  );
  if (error instanceof GitError) return error;
  throw new Error(`A GitError was expected, not ${error}`);
}

/** All text of an error: message, stack, own fields, causes. */
function everythingOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return `${error.stack} ${JSON.stringify(error)} ${Object.values(error).join(' ')} ${everythingOf(error.cause ?? '')}`;
}

/** Every file below `path` that holds one of our secrets. */
function filesWithSecret(path: string): string[] {
  return readdirSync(path, { recursive: true, encoding: 'utf8' }).filter((name) => {
    const file = join(path, name);
    if (!statSync(file, { throwIfNoEntry: false })?.isFile()) return false;
    const content = readFileSync(file);
    return content.includes(token) || content.includes(encoded);
  });
}

/** The arguments of every process. */
function allArguments(): string {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'latin1');
      } catch {
        return '';
      }
    })
    .join('\n');
}

t.test('a private repository is fetched with a token that is seen nowhere', async (t) => {
  const { lab, remote, story, reviews } = await scene(t);
  remote.token = token;
  let commandLines = '';
  remote.behaviour = (_request, response) => {
    // Git waits for us now: running processes can be inspected.
    commandLines += allArguments();
    response.writeHead(401, { 'www-authenticate': 'Basic realm="git"' }).end();
  };
  const refused = await failure(reviews.prepare(lab.target(story, withToken)));
  t.match(commandLines, /remote-http/, 'the fetch was seen');
  t.notMatch(commandLines, token);
  t.notMatch(commandLines, encoded);
  t.equal(refused.code, 'reviewTargetFetchFailed');
  t.match(refused.message, /did not accept our credentials/);
  t.notMatch(everythingOf(refused), token);
  t.notMatch(everythingOf(refused), encoded);

  remote.behaviour = 'git';
  const found = await reviews.prepare(lab.target(story, withToken));
  t.equal(found.headSha, story.head);
  t.equal(remote.seen.at(-1)?.authorization, `basic ${encoded}`);
  t.strictSame(filesWithSecret(lab.directory), [], 'no file holds the token');
});

t.test('only the fetch knows the token, and a second review of present commits starts four processes', async (t) => {
  const { lab, remote, story } = await scene(t);
  remote.token = token;
  const seen = join(lab.directory, 'seen');
  const real = execFileSync('sh', ['-c', 'command -v git']).toString().trim();
  const script = `#!/bin/sh\n{ echo "$@"; env; } > ${seen}/$$\nexec ${real} "$@"\n`;
  put(join(lab.directory, 'bin', 'git'), script, 0o755);
  mkdirSync(seen);
  const path = `${join(lab.directory, 'bin')}:${process.env['PATH']}`;
  const reviews = await lab.open({ gitEndpoint: remote.endpoint, path });
  /** Variables of each process since the last call, by its command. */
  const look = () =>
    readdirSync(seen).map((name) => {
      const header = readFileSync(join(seen, name), 'utf8');
      rmSync(join(seen, name));
      return [header.split(' ', 1)[0] ?? '', header.includes(token) || header.includes(encoded)] as const;
    });
  await reviews.prepare(lab.target(story, withToken));
  const first = look();
  t.ok(first.length > 4);
  t.strictSame(
    first.filter(([, hasToken]) => hasToken).map(([command]) => command),
    ['fetch'],
  );
  const { worktreePath } = await reviews.prepare(lab.target(story, { ...withToken, runId: 'run-2' }));
  t.strictSame(
    look()
      .map(([command]) => command)
      .sort(),
    ['diff-tree', 'ls-tree', 'merge-base', 'read-tree'],
  );
  await reviews.verifyClean(worktreePath);
  t.strictSame(
    look().filter(([, hasToken]) => hasToken),
    [],
  );
});

t.test('a wrong token is a failure that may pass, without a prompt', async (t) => {
  const { lab, remote, story, reviews } = await scene(t);
  remote.token = token;
  const wrong = await failure(reviews.prepare(lab.target(story, { token: async () => 'ghs_wrong' })));
  t.match(wrong, { code: 'reviewTargetFetchFailed', isRetryable: true });
  const none = await failure(reviews.prepare(lab.target(story)));
  t.match(none.message, /did not accept our credentials/);
});

t.test('every bad answer of a remote has a name', async (t) => {
  const { lab, remote, story, reviews } = await scene(t);
  const target = lab.target(story, withToken);
  const cases: readonly [answer: HttpRemote['behaviour'], message: RegExp, isRetryable: boolean][] = [
    [(_, response) => response.writeHead(403).end(), /refused access/, false],
    [(_, response) => response.writeHead(404).end(), /no such repository/, false],
    [(_, response) => response.writeHead(500).end(), /could not be read/, true],
    [(_, response) => response.writeHead(503).end(token), /could not be read/, true],
    [(_, response) => response.destroy(), /could not be read/, true],
    [(_, response) => response.end('<html>\u0007\u202eLog in</html>'), /no such ref/, true],
    [
      (_, response) => {
        response.setHeader('content-type', 'application/x-git-upload-pack-advertisement');
        response.end(`ffff${token}garbage`);
      },
      /could not be read|no such ref/,
      true,
    ],
    [
      (_, response) => {
        response.setHeader('content-type', 'application/x-git-upload-pack-advertisement');
        response.end('001e# service=git-upload-pack\n0000000eversion 2\n');
      },
      /could not be read|no such ref/,
      true,
    ],
  ];
  for (const [behaviour, message, isRetryable] of cases) {
    remote.behaviour = behaviour;
    const error = await failure(reviews.prepare(target));
    t.match(error, { code: 'reviewTargetFetchFailed', isRetryable });
    t.match(error.message, message);
    t.notMatch(everythingOf(error), token);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these must not be there
    t.notMatch(error.message, /[\u0000-\u001f\u202e]/);
  }
  remote.behaviour = 'git';
  t.equal((await reviews.prepare(target)).headSha, story.head, 'and nothing of it sticks');
});

t.test('a redirect is not followed: the token stays with the host it is for', async (t) => {
  const { lab, remote, story, reviews } = await scene(t);
  const seen: unknown[] = [];
  const other = createServer((request, response) => {
    seen.push(request.headers);
    response.end();
  });
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
  t.teardown(() => void other.close());
  const { port } = other.address() as AddressInfo;
  remote.behaviour = (request, response) =>
    response.writeHead(301, { location: `http://127.0.0.1:${port}${request.url}` }).end();
  const error = await failure(reviews.prepare(lab.target(story, withToken)));
  t.match(error, { code: 'reviewTargetFetchFailed', isRetryable: false });
  t.match(error.message, /renamed/);
  t.strictSame(seen, []);
});

t.test('a remote that hangs is given up, with all processes of the fetch', async (t) => {
  const { lab, remote, story, reviews } = await scene(t, { fetchMs: 1_500 });
  remote.behaviour = () => {};
  const error = await failure(reviews.prepare(lab.target(story, withToken)));
  t.match(error, { code: 'reviewTargetFetchFailed', isRetryable: true });
  t.match(error.message, /took too long/);
  t.notMatch(allArguments(), remote.endpoint, 'no process of it is left');
  remote.behaviour = 'git';
  // A limit that short may be too short for a busy machine.
  const patient = await lab.open({ gitEndpoint: remote.endpoint });
  t.equal((await patient.prepare(lab.target(story, withToken))).headSha, story.head);
});

t.test('a remote that trickles is given up as stalled', async (t) => {
  const { lab, remote, story, reviews } = await scene(t, { lowSpeedBytes: 1_000, lowSpeedSeconds: 1 });
  remote.behaviour = (_, response) => {
    response.setHeader('content-type', 'application/x-git-upload-pack-advertisement');
    response.write('001e# service=git-upload-pack\n');
  };
  const error = await failure(reviews.prepare(lab.target(story)));
  t.match(error, { code: 'reviewTargetFetchFailed', isRetryable: true });
});

t.test('an abort, or a shutdown, ends the fetch', async (t) => {
  const { lab, remote, story, reviews } = await scene(t);
  for (const end of ['abort', 'close']) {
    const stop = new AbortController();
    remote.behaviour = () => (end === 'abort' ? stop.abort(new Error('cancelled')) : void reviews.close());
    await t.rejects(reviews.prepare(lab.target(story, { ...withToken, signal: stop.signal })));
    t.notMatch(allArguments(), remote.endpoint, 'no process of it is left');
  }
});

t.test('a pack that is too large is refused', async (t) => {
  const { lab, remote, story, reviews } = await scene(t, { packBytes: 64 * 1_024 });
  const noise = Buffer.from(Array.from({ length: 300_000 }, () => Math.floor(Math.random() * 256)));
  const head = lab.upstream.commitFiles({ 'noise.bin': noise }, [story.base]);
  lab.upstream.setHead(7, head);
  const error = await failure(reviews.prepare(lab.target({ ...story, head })));
  t.match(error, { code: 'reviewTargetFetchFailed', isRetryable: false });
  t.match(error.message, /too large/);
  t.equal(remote.seen.length > 0, true);
});

t.test('a pull request that is pushed over during the fetch', async (t) => {
  const { lab, remote, story, reviews } = await scene(t);
  const forced = lab.upstream.commitFiles({ 'a.txt': 'forced\n' }, [story.base]);
  const target = lab.target(story, {
    token: async () => {
      lab.upstream.setHead(7, forced);
      return token;
    },
  });
  t.match(await failure(reviews.prepare(target)), { code: 'reviewTargetMoved', actualHead: forced });
  t.equal(remote.seen.length > 0, true);
  t.equal((await reviews.prepare(lab.target({ ...story, head: forced }))).headSha, forced);
});

t.test('missing blobs of a blobless checkout are fetched over HTTP, with the token', async (t) => {
  const lab = new Lab(t);
  const story = lab.begin();
  lab.clone('--filter=blob:none', '--no-checkout');
  const remote = await HttpRemote.start(t, join(lab.directory, 'forge'));
  remote.token = token;
  const reviews = await lab.open({ gitEndpoint: remote.endpoint });
  const found = await reviews.prepare(lab.target(story, withToken));
  t.equal(readFileSync(join(found.worktreePath, 'a.txt'), 'utf8'), 'one\nTWO\nthree\n');
  const before = remote.seen.length;
  t.equal(await found.baseFiles('AGENTS.md'), 'Be kind.\n');
  t.equal(await found.baseFiles('nothing'), null);
  await reviews.verifyClean(found.worktreePath);
  t.equal(remote.seen.length, before, 'reading asks the remote nothing');
  t.strictSame(filesWithSecret(lab.directory), []);
});
