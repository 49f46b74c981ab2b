/** Reading in the page's chat: a place that stays, selections, search, screen readers, printing, copying, memory. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { CDPSession, Page, WebSocketRoute } from 'playwright-core';
import type { ModelProvider } from '../../src/agent/index.ts';
import { type Thread, threadMarkdown } from '../../src/protocol/index.ts';
import { always, callTool, gate, say, script } from '../agent/scripted-provider.ts';
import { Client } from '../appserver/harness.ts';
import { box, button, chatStage, openThread, write } from './chat-scene.ts';
import { shows } from './shows.ts';

const { scene } = await chatStage();

const long = `${'A long answer.\n\n'.repeat(12)}The end.`;
const questions = (count: number) => Array.from({ length: count }, (_, index) => `Question ${index + 1}`);
const said = (page: Page, text: string) => page.locator('.said').getByText(text, { exact: true });
/** Distance of a message from the top of the list, CSS pixels. */
const topOf = (page: Page, text: string) =>
  said(page, text).evaluate((element) => {
    const log = element.closest('.log');
    return log ? Math.round(element.getBoundingClientRect().top - log.getBoundingClientRect().top) : Number.NaN;
  });

scene(
  'regression: a link to a turn shows it when older turns arrive before the list is drawn',
  { provider: always(say(long)), at: '/overview', isChanged: true },
  async (t, { page, served, go }) => {
    const threadId = await served.say(...questions(110));
    await page.addInitScript(() => {
      const { requestAnimationFrame: draw } = window;
      window.requestAnimationFrame = (then) => Number(setTimeout(() => draw(then), 300));
    });
    await page.reload();
    await go(`/chat/${threadId}?turn=turn_100`);
    await said(page, 'Question 100').waitFor();
    await shows(t, 'equal', async () => Math.abs(await topOf(page, 'Question 100')) < 120, true);
  },
);

scene(
  'regression: a reader of older turns keeps their place over a lost connection',
  { provider: always(say(long)), at: '/overview' },
  async (t, { page, served, go }) => {
    const threadId = await served.say(...questions(110));
    const sockets: WebSocketRoute[] = [];
    await page.routeWebSocket(/\/dashboard\/ws$/, (socket) => {
      sockets.push(socket);
      socket.connectToServer();
    });
    await page.reload();
    await go(`/chat/${threadId}?turn=turn_020`);
    await said(page, 'Question 20').waitFor();
    await shows(t, 'equal', async () => Math.abs(await topOf(page, 'Question 20')) < 120, true);
    await page.getByRole('log').evaluate((element) => element.scrollBy(0, 150));
    await said(page, 'Question 21').waitFor();
    await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
    const before = await topOf(page, 'Question 21');
    const opened = sockets.length;
    await sockets.at(-1)?.close({ code: 1011 });
    await shows(t, 'equal', async () => sockets.length > opened, true);
    await page.getByText('Disconnected.').waitFor({ state: 'hidden' });
    await shows(t, 'equal', () => page.getByRole('button', { name: 'Jump to latest' }).count(), 1);
    await shows(t, 'equal', () => topOf(page, 'Question 21'), before);
  },
);

const [first, second, third] = [gate(), gate(), gate()];
scene(
  'regression: a selection stays while text is added to its paragraph and to its code',
  {
    provider: script([
      say('These words stay '),
      first,
      say('selected, as **they** should.\n\n```ts\nconst one = 1;\n'),
      second,
      say('const two = 2;\n'),
      third,
      say('const three = 3;\n```\n\nThe end.'),
    ]),
  },
  async (t, { page }) => {
    await write(page, 'Begin');
    const select = (at: string, length: number) =>
      page.locator(at).evaluate((element, length) => {
        const [node] = (function* texts(within: Node): Generator<Node> {
          for (const child of within.childNodes)
            if (child instanceof Text && child.data !== '') yield child;
            else yield* texts(child);
        })(element);
        if (node) getSelection()?.setBaseAndExtent(node, 0, node, length);
      }, length);
    const selected = () => page.evaluate(() => String(getSelection()));
    await page.locator('.answer p', { hasText: 'These words stay' }).waitFor();
    await select('.answer p', 11);
    first.open();
    await page.locator('.answer pre', { hasText: 'const one' }).waitFor();
    t.equal(await selected(), 'These words');
    await select('.answer pre code', 5);
    t.equal(await selected(), 'const');
    second.open();
    await page.locator('.answer pre', { hasText: 'const two' }).waitFor();
    t.equal(await selected(), 'const');
    third.open();
    await page.locator('.row-end', { hasText: 'Done' }).waitFor();
    t.equal(await selected(), 'const');
    await page.evaluate(() => getSelection()?.removeAllRanges());
    await page.locator('.answer .code-keyword', { hasText: 'const' }).nth(2).waitFor();
    await shows(
      t,
      'equal',
      () => page.locator('.answer pre').textContent(),
      'const one = 1;\nconst two = 2;\nconst three = 3;',
    );
  },
);

scene(
  'regression: Ctrl F finds messages that are not in the document; Esc gives the key back to the browser',
  { provider: always(say(long)), at: '/overview' },
  async (t, { page, served, go }) => {
    const threadId = await served.say('The pelican lands', ...questions(108), 'A Pelican flies');
    await go(`/chat/${threadId}`);
    await said(page, 'A Pelican flies').waitFor();
    t.equal(await said(page, 'The pelican lands').count(), 0);
    await page.keyboard.press('Control+f');
    const field = page.getByRole('searchbox', { name: 'Search in this conversation' });
    await field.fill('pelican');
    const status = page.locator('.find [role=status]');
    await shows(t, 'equal', () => status.textContent(), '2 of 2');
    await field.press('Enter');
    await shows(t, 'equal', () => status.textContent(), '1 of 2');
    await said(page, 'The pelican lands').waitFor();
    await page.getByRole('button', { name: 'Next result' }).click();
    await said(page, 'A Pelican flies').waitFor();
    await page.getByRole('button', { name: 'Previous result' }).click();
    await said(page, 'The pelican lands').waitFor();
    await field.fill('no such words');
    await shows(t, 'equal', () => status.textContent(), 'No results');
    await field.press('Escape');
    await shows(t, 'equal', () => field.count(), 0);
    const isTaken = () =>
      page.evaluate(() => {
        const event = new KeyboardEvent('keydown', { key: 'f', ctrlKey: true, bubbles: true, cancelable: true });
        return !document.body.dispatchEvent(event);
      });
    t.equal(await isTaken(), false, 'the browser has its key');
    await button(page, 'Search in this conversation').click();
    await field.waitFor();
  },
);

scene(
  'regression: the palette finds words of any conversation and leads to their turn',
  { provider: always(say(long)), at: '/overview' },
  async (t, { page, served }) => {
    await served.say(...questions(60).map((text, index) => (index === 3 ? 'Paint the lighthouse' : text)));
    await page.waitForFunction(() => !location.hash.includes('token='));
    await page.keyboard.press('Control+k');
    await page.getByRole('combobox').fill('lighth');
    await page.getByRole('option', { name: /Paint the lighthouse/ }).click();
    await said(page, 'Paint the lighthouse').waitFor();
    await shows(t, 'match', async () => page.url(), /turn=turn_004/);
  },
);

const working = gate();
scene(
  'regression: the end of a turn is announced, and one key leads to its answer and back',
  { provider: script([say('Half of it. '), working, say('All of it.')], { type: 'fail', error: new Error('broken') }) },
  async (t, { page }) => {
    await write(page, 'Begin');
    const status = page.locator('.doing');
    await status.filter({ hasText: 'Working…' }).waitFor();
    working.open();
    await status.filter({ hasText: /^Done$/ }).waitFor();
    t.equal(await status.getAttribute('role'), 'status');
    await box(page).press('F6');
    const focused = () => page.evaluate(() => document.activeElement?.textContent ?? '');
    await shows(t, 'match', () => focused(), /^Half of it\. All of it\./);
    await page.keyboard.press('F6');
    await shows(t, 'equal', () => box(page).evaluate((element) => element === document.activeElement), true);
    await write(page, 'Again');
    await status.filter({ hasText: /^Failed: ./ }).waitFor();
  },
);

scene(
  'regression: the end of a conversation stays in sight while the box grows, and so does the foot of a turn',
  { provider: always(say(`${'A long answer.\n\n'.repeat(40)}The end.`)) },
  async (t, { page }) => {
    await write(page, 'Begin');
    await page.locator('.row-end', { hasText: 'Done' }).waitFor();
    const isInSight = () =>
      page.locator('.row-end').evaluate((element) => {
        const log = element.closest('.log')?.getBoundingClientRect();
        return element.getBoundingClientRect().bottom <= (log?.bottom ?? 0) + 1;
      });
    await shows(t, 'equal', isInSight, true, 'the foot');
    for (let line = 1; line <= 8; line += 1) {
      await box(page).pressSequentially(`line ${line}`);
      await box(page).press('Shift+Enter');
    }
    await shows(t, 'equal', isInSight, true, 'after eight lines');
    await box(page).fill('one line');
    await box(page).fill(Array.from({ length: 14 }, (_, index) => `pasted ${index}`).join('\n'));
    await shows(t, 'equal', isInSight, true, 'after pasted lines');
  },
);

scene(
  'regression: a conversation is printed whole and without controls',
  { provider: always(say(long)), at: '/overview' },
  async (t, { page, served, go }) => {
    const threadId = await served.say(...questions(30));
    await go(`/chat/${threadId}`);
    await said(page, 'Question 30').waitFor();
    t.ok((await page.locator('.said').count()) < 30);
    await page.emulateMedia({ media: 'print' });
    await shows(t, 'equal', () => page.locator('.said').count(), 30);
    for (const part of ['.rail', '.head', '.threads', '.composer', '.end button'])
      await shows(t, 'equal', () => page.locator(part).first().isVisible(), false, part);
    const height = () => page.evaluate(() => document.documentElement.scrollHeight);
    t.ok((await height()) > 6_000, 'the whole text flows over pages');
    await page.emulateMedia({ media: 'screen' });
    await shows(t, 'equal', async () => (await page.locator('.said').count()) < 30, true);
  },
);

const markdown = '# Plan\n\n- **one**\n- two\n\n```ts\nconst a = 1;\n```';
scene(
  'regression: an answer and a conversation are copied as Markdown, code without its caption; each copy is announced',
  { provider: script(callTool('ReadFile', { path: 'none.txt' }), say(markdown)) },
  async (t, { page, served }) => {
    await write(page, 'Make a plan');
    const threadId = await openThread(page);
    await page.locator('.row-end', { hasText: 'Done' }).waitFor();
    const clipboard = () => page.evaluate(() => navigator.clipboard.readText());
    await page.locator('.answer').getByRole('button', { name: 'Copy as Markdown' }).click();
    await page.locator('.answer [role=status]', { hasText: 'Copied' }).waitFor();
    t.equal(await clipboard(), markdown);
    const client = await Client.ready(t, served.server.webSocketUrl);
    const { thread } = await client.call('thread/read', { threadId, includeTurns: true });
    await page.locator('.desk > header').getByRole('button', { name: 'Copy as Markdown' }).click();
    await page.locator('.desk > header [role=status]', { hasText: 'Copied' }).waitFor();
    t.equal(await clipboard(), threadMarkdown(thread as unknown as Thread));
    t.match(await clipboard(), /^# Make a plan\n\n## You\n\nMake a plan\n\n\*1 tool call\*\n\n## Agent\n\n# Plan\n/);
    await page.getByRole('button', { name: 'Copy code' }).click();
    await page.locator('figcaption [role=status]', { hasText: 'Copied' }).waitFor();
    t.equal(await clipboard(), 'const a = 1;');
    const selected = await page.locator('.answer').evaluate((element) => {
      getSelection()?.selectAllChildren(element);
      return String(getSelection());
    });
    t.notMatch(selected, /^ts$/m, 'a selection leaves the caption out');
  },
);

/** Streams paragraphs, a few in each hundredth of a second. */
const paragraphs = 4_000;
const streaming: ModelProvider = {
  name: 'streaming',
  model: 'streaming',
  async stream(_, emit) {
    for (let number = 0; number < paragraphs; number += 1) {
      emit({ type: 'text', text: `Words ${number}.\n\n` });
      if (number % 2 === 0) await sleep(12);
    }
    emit({ type: 'finish', reason: 'stop' });
  },
  listModels: async () => [],
  close: () => {},
};
scene(
  'regression: a streamed answer takes no more memory than the same answer read again',
  { provider: streaming },
  async (t, { page }) => {
    const debug: CDPSession = await page.context().newCDPSession(page);
    const heap = async (): Promise<number> => {
      for (let times = 0; times < 3; times += 1) await debug.send('HeapProfiler.collectGarbage');
      return (await debug.send('Runtime.getHeapUsage')).usedSize;
    };
    await write(page, 'Begin');
    await page.locator('.row-end', { hasText: 'Done' }).waitFor();
    await page.locator('.answer p', { hasText: `Words ${paragraphs - 1}.` }).waitFor();
    const streamed = await heap();
    await page.reload();
    await page.locator('.row-end', { hasText: 'Done' }).waitFor();
    await page.locator('.answer p', { hasText: `Words ${paragraphs - 1}.` }).waitFor();
    const readAgain = await heap();
    const inMiB = (bytes: number) => `${(bytes / 1_048_576).toFixed(1)} MiB`;
    t.ok(streamed <= 1.5 * readAgain, `${inMiB(streamed)} after streaming, ${inMiB(readAgain)} after reading`);
    await debug.detach();
  },
);
