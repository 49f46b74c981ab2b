/** Notices by ntfy and on the desktop, against a server and a program that the test brings. */
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import type { NotificationChannelContext } from '../../machines/index.ts';
import { DeliveryError, failureOf, type Notice } from '../../src/hub/notices/delivery.ts';
import { desktopCommand, showOnDesktop } from '../../src/hub/notices/desktop.ts';
import { Notices, sendToNtfy } from '../../src/hub/notices/index.ts';
import { createLogger } from '../../src/log/index.ts';
import { temporaryDirectory } from './harness.ts';

const token = 'tk_a1b2c3d4e5f6';

/** An ntfy server: answers with the statuses in turn, then 200. */
async function fakeNtfy(t: Test, ...statuses: readonly (readonly [status: number, retryAfter?: string])[]) {
  const seen: { readonly headers: IncomingMessage['headers']; readonly body: string }[] = [];
  const waiting: (() => void)[] = [];
  const left = [...statuses];
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += String(chunk);
    seen.push({ headers: request.headers, body });
    const [status, retryAfter] = left.shift() ?? [200];
    response.writeHead(status, retryAfter === undefined ? {} : { 'retry-after': retryAfter }).end('{"secret":"echo"}');
    for (const wake of waiting.splice(0)) wake();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => server.close());
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/topic`,
    seen,
    async until(count: number): Promise<void> {
      while (seen.length < count) await new Promise<void>((resolve) => waiting.push(resolve));
    },
  };
}

function noticesOf(t: Test) {
  const lines: string[] = [];
  const contexts: NotificationChannelContext[] = [];
  const settled: (() => void)[] = [];
  const notices = new Notices({
    pageUrl: () => 'http://127.0.0.1:7717',
    seed: () => 1,
    observe: (actor) =>
      actor.subscribe(({ context }) => {
        contexts.push(context);
        for (const wake of settled.splice(0)) wake();
      }),
    logger: createLogger({
      name: 'test',
      level: 'debug',
      stream: { write: (text) => lines.push(text) },
      pretty: false,
    }),
  });
  t.teardown(() => notices.closeAll());
  return {
    notices,
    lines,
    async until(isSo: (context: NotificationChannelContext) => boolean): Promise<NotificationChannelContext> {
      for (;;) {
        const found = contexts.find(isSo);
        if (found) return found;
        await new Promise<void>((resolve) => settled.push(resolve));
      }
    },
  };
}

const request = (requestId: string, operation = 'run') => ({
  ...{ workspaceId: 'aaaabbbbccccdddd', requestId, threadId: 'thread_1', tool: 'Exec', operation },
  ...{ actionUrl: '/w/aaaabbbbccccdddd/#/chat/thread_1', expiresAt: '2026-01-01T00:00:00.000Z' },
});
const notice: Notice = {
  ...{ id: 'w/r', title: 'site waits', body: 'Exec: run', actionUrl: 'http://127.0.0.1:7717/w/x/' },
  ...{ inboxPath: '/#/inbox/w/r', expiresAt: 0 },
};

t.test('ntfy gets one POST with the link, the token in a header, and nothing that is asked', async (t) => {
  const ntfy = await fakeNtfy(t);
  const { notices, until } = noticesOf(t);
  notices.open({ name: 'ntfy', deliver: (each, signal) => sendToNtfy({ Url: ntfy.url, Token: token }, each, signal) });
  notices.added('sité\u202e\n', request('approval_1'));
  await until(({ delivered }) => delivered === 1);
  t.equal(ntfy.seen.length, 1);
  const [{ headers, body } = { headers: {}, body: '' }] = ntfy.seen;
  t.match(headers, {
    authorization: `Bearer ${token}`,
    click: 'http://127.0.0.1:7717/w/aaaabbbbccccdddd/#/chat/thread_1',
    title: 'Oratorio',
  });
  t.match(body, /^sité.* waits for an answer\nExec: run$/);
  t.notMatch(body, /[\u202e]/, 'no character that hides others');
});

t.test('a busy server is tried again; the log names neither the token nor the topic', async (t) => {
  const ntfy = await fakeNtfy(t, [503, '0'], [429, '0']);
  const { notices, until, lines } = noticesOf(t);
  notices.open({ name: 'ntfy', deliver: (each, signal) => sendToNtfy({ Url: ntfy.url, Token: token }, each, signal) });
  notices.added('site', request('approval_1'));
  const { dropped } = await until(({ delivered }) => delivered === 1);
  t.same([ntfy.seen.length, dropped], [3, 0]);
  t.match(lines.join(''), /answered 503/);
  t.notMatch(lines.join(''), new RegExp(`${token}|/topic|echo`));
});

t.test('a refused notice is dropped, and the next one is sent', async (t) => {
  const ntfy = await fakeNtfy(t, [403]);
  const { notices, until } = noticesOf(t);
  notices.open({ name: 'ntfy', deliver: (each, signal) => sendToNtfy({ Url: ntfy.url, Token: '' }, each, signal) });
  notices.added('site', request('approval_1'));
  notices.added('site', request('approval_2', 'write'));
  t.match(await until(({ delivered }) => delivered === 1), { dropped: 1 });
  t.same([ntfy.seen.length, ntfy.seen[1]?.body.split('\n')[1]], [2, 'Exec: write']);
  t.equal(ntfy.seen[0]?.headers.authorization, undefined);
});

t.test('a request that was decided before its notice was sent is not announced', async (t) => {
  const ntfy = await fakeNtfy(t);
  const { notices, until } = noticesOf(t);
  let release: () => void = () => {};
  const first = new Promise<void>((resolve) => {
    release = resolve;
  });
  notices.open({
    name: 'ntfy',
    async deliver(each, signal) {
      await first;
      await sendToNtfy({ Url: ntfy.url, Token: '' }, each, signal);
    },
  });
  for (const id of ['approval_1', 'approval_2', 'approval_3']) notices.added('site', request(id, id));
  const made = { decision: 'accept', decidedBy: 'page', reason: 'answered', decidedAt: null };
  notices.resolved({ workspaceId: 'aaaabbbbccccdddd', requestId: 'approval_2', ...made });
  release();
  await until(({ delivered }) => delivered === 2);
  t.same(
    ntfy.seen.map(({ body }) => body.split('\n')[1]),
    ['Exec: approval_1', 'Exec: approval_3'],
  );
});

t.test('a server that is not there is a failure that may pass; a redirect is not followed', async (t) => {
  const other = await fakeNtfy(t);
  const server = createServer((_, response) => response.writeHead(302, { location: other.url }).end());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/topic`;
  const signal = new AbortController().signal;
  const send = () => sendToNtfy({ Url: url, Token: token }, notice, signal);
  await t.rejects(
    send(),
    new DeliveryError({ kind: 'retryable', message: `${new URL(url).host} could not be reached.` }),
  );
  t.equal(other.seen.length, 0, 'the token stays');
  await new Promise((resolve) => server.close(resolve));
  await t.rejects(send(), DeliveryError);
  t.equal(failureOf('x', 204, null), undefined);
  t.match(failureOf('x', 429, '7'), { kind: 'retryable', retryAfterMs: 7_000 });
  t.match(failureOf('x', 503, 'soon'), { kind: 'retryable', retryAfterMs: undefined });
  t.match(failureOf('x', 404, null), { kind: 'refused' });
});

t.test('the desktop gets texts as arguments, never as options, script or markup', async (t) => {
  const hostile = { ...notice, title: '--icon=/etc/passwd', body: '<b>"; do shell script "x' };
  const linux = desktopCommand('linux', hostile) ?? [];
  t.same(linux.slice(0, 4), ['notify-send', '--app-name=Oratorio', '--', '--icon=/etc/passwd']);
  t.match(linux[4], /^&lt;b&gt;"; do shell script "x\n/);
  const mac = desktopCommand('darwin', hostile) ?? [];
  t.same(mac.slice(3, 5), ['--', '--icon=/etc/passwd']);
  t.notMatch(mac[2], /shell script/);
  t.equal(desktopCommand('win32', hostile), undefined);
});

t.test('a program of the desktop is run without a shell, and one that is missing is a refusal', async (t) => {
  const directory = temporaryDirectory(t, 'oratorio-desktop-');
  const shown = join(directory, 'shown');
  const signal = new AbortController().signal;
  if (process.platform === 'linux') {
    const missing = new DeliveryError({ kind: 'refused', message: 'notify-send is not installed' });
    await t.rejects(showOnDesktop(notice, { PATH: directory }, signal), missing);
    const script = `#!/bin/sh\nfor each in "$@"; do echo "$each" >> '${shown}'; done\n`;
    writeFileSync(join(directory, 'notify-send'), script);
    chmodSync(join(directory, 'notify-send'), 0o755);
    await showOnDesktop({ ...notice, title: '$(touch x)' }, { PATH: `${directory}:/usr/bin:/bin` }, signal);
    t.match(readFileSync(shown, 'utf8'), '--app-name=Oratorio\n--\n$(touch x)\nExec: run\n');
  }
  t.notOk(existsSync('x'));
});
