/** Chat over an agent server that is killed while it answers. */
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import t, { type Test } from 'tap';
import { dashboardToken } from '../../src/supervise/index.ts';
import { makeWorkspace, serving, spawnServer } from '../appserver/harness.ts';
import { unusedPort } from '../ports.ts';
import { chatStage, openThread, write } from './chat-scene.ts';
import { shows } from './shows.ts';

const { open } = await chatStage();

const piece = (content: string) => `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content } }] })}\n\n`;
const end = `data: ${JSON.stringify({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] })}\n\ndata: [DONE]\n\n`;

/** A model that begins its first answer and leaves it unfinished, and gives every further one whole. */
async function model(t: Test): Promise<string> {
  let count = 0;
  const server = createServer((request, response: ServerResponse) => {
    request.resume().on('end', () => {
      if (request.method !== 'POST') return void response.writeHead(404).end();
      count += 1;
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      if (count === 1) response.write(piece('The beginning of it'));
      else response.end(piece('A whole answer.') + end);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
}

interface Transition {
  readonly type: string;
  readonly id: string;
  readonly step: number;
  readonly event: string;
  readonly from: readonly string[];
  readonly to: readonly string[];
}

/** Transitions of an ended actor in the inspection stream. */
async function historyOf(url: string, token: string, id: string): Promise<readonly Transition[]> {
  const headers = { authorization: `Bearer ${token}` };
  // A stream of records has no end.
  const { body } = await fetch(`${url}/dashboard/api/inspect`, { headers, signal: AbortSignal.timeout(300_000) });
  let text = '';
  for await (const piece of body ?? []) {
    text += new TextDecoder().decode(piece);
    const lines = text.split('\n').slice(0, -1);
    const records = lines.flatMap((line) => {
      if (!line.startsWith('data: ')) return [];
      const document = JSON.parse(line.slice('data: '.length));
      return [document.json ?? document].flat() as Transition[];
    });
    const found = records.filter((record) => record.id === id);
    if (found.some(({ type }) => type === 'gone')) return found.filter(({ type }) => type === 'transition');
  }
  return [];
}

t.test(
  'after kill -9 the page shows the resumed turn with its history, and sends the waiting message once',
  async (t) => {
    const port = await unusedPort();
    const config = {
      Provider: 'openai-compatible',
      EndPoint: await model(t),
      ApiKey: 'test-key',
      Model: 'test-model',
      DashBoard: { Enabled: true, Port: port },
    };
    const { path, home } = makeWorkspace(t, config);
    const first = spawnServer(t, { path, home });
    await serving(first, path);
    const url = `http://127.0.0.1:${port}`;
    const { page, complaints, foreign } = await open(t, { url, token: dashboardToken(home, path) }, '/chat');
    await write(page, 'Begin');
    const threadId = await openThread(page);
    await page.locator('.prose', { hasText: 'The beginning of it' }).waitFor();
    first.child.kill('SIGKILL');
    await first.ended;
    await page.getByText('Disconnected.').waitFor();
    await write(page, 'Written meanwhile');
    await page.locator('.queue li', { hasText: 'Not sent yet' }).waitFor();
    await serving(spawnServer(t, { path, home }), path);
    await page.locator('.prose', { hasText: 'A whole answer.' }).nth(1).waitFor();
    await page.locator('.row-end', { hasText: 'Done' }).nth(1).waitFor();
    await shows(t, 'same', () => page.locator('.said .written').allTextContents(), ['Begin', 'Written meanwhile']);
    t.same(await page.locator('.prose').allTextContents(), [
      'The beginning of it',
      'A whole answer.',
      'A whole answer.',
    ]);
    await shows(t, 'equal', () => page.locator('.row-end').first().locator('span').first().textContent(), 'Done');
    await shows(t, 'equal', () => page.locator('.queue li').count(), 0);
    t.equal(await openThread(page), threadId);
    const history = await historyOf(url, dashboardToken(home, path), `${threadId}/turn_001`);
    const at = history.findIndex(({ event }) => event === 'process.ended');
    const before = ['working', 'working.requesting', 'working.requesting.inferring'];
    t.match(history[at], { from: before, to: ['working', 'working.resuming'] }, 'a break between two processes');
    t.same(history[at - 1]?.to, before, 'the transitions of the killed process precede it');
    t.equal(history[at + 1]?.to.at(-1), 'working.checking');
    t.same(
      history.map(({ step }) => step),
      history.map((_, index) => index + 1),
      'without a gap',
    );
    t.same([...complaints, ...foreign], []);
  },
);
