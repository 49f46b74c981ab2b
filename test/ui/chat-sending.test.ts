/** Sending, answering and undoing in the page's chat: nothing is lost, sent twice, or cut in half. */
import { execFileSync } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { always, callTool, gate, say, script } from '../agent/scripted-provider.ts';
import { box, button, chatStage, openThread, write } from './chat-scene.ts';
import { goTo } from './kept-page.ts';
import { shows } from './shows.ts';

const { scene } = await chatStage();

const autoApprove = { Permissions: { DefaultApprovalPolicy: 'autoApprove' } };

scene(
  'regression: a message whose acceptance is lost with a reload is sent once, and the box stays empty',
  { provider: always(say('Heard.')), at: '/overview' },
  async (t, { page, served, go }) => {
    const threadId = await served.say('Before');
    let isHeld = false;
    let isArmed = true;
    let accepted = 0;
    await page.routeWebSocket(/\/dashboard\/ws$/, (socket) => {
      const server = socket.connectToServer();
      server.onMessage((frame) => {
        if (String(frame).includes('"queuedInput"') || String(frame).includes('turn/started')) accepted += 1;
        if (!isHeld) socket.send(frame);
      });
      socket.onMessage((frame) => {
        server.send(frame);
        // From here on, nothing comes back to the page.
        if (isArmed && String(frame).includes('"turn/enqueue"')) isHeld = true;
      });
    });
    await page.reload();
    await go(`/chat/${threadId}`);
    await page.locator('.said', { hasText: 'Before' }).waitFor();
    await write(page, 'Exactly once');
    await shows(t, 'equal', async () => accepted > 0, true);
    isHeld = false;
    isArmed = false;
    await page.reload();
    await page.locator('.said', { hasText: 'Exactly once' }).waitFor();
    await page.locator('.row-end').nth(1).waitFor();
    await shows(t, 'equal', () => page.locator('.queue li').count(), 0);
    await shows(t, 'equal', () => page.locator('.said', { hasText: 'Exactly once' }).count(), 1);
    await shows(t, 'equal', () => box(page).inputValue(), '');
  },
);

scene(
  'regression: Enter of an input method is not a send, also when it comes after the composition',
  { provider: always(say('Heard.')) },
  async (t, { page }) => {
    await box(page).fill('こんにちは');
    const isTaken = await box(page).evaluate((element) => {
      element.dispatchEvent(new CompositionEvent('compositionend', { bubbles: true }));
      const key = { key: 'Enter', keyCode: 229, bubbles: true, cancelable: true };
      return !element.dispatchEvent(new KeyboardEvent('keydown', key));
    });
    t.equal(isTaken, false);
    t.equal(await box(page).inputValue(), 'こんにちは');
    await box(page).evaluate((element) => element.blur());
    const address = page.url();
    await page.evaluate(() => {
      for (const key of ['g', 's'])
        document.body.dispatchEvent(new KeyboardEvent('keydown', { key, keyCode: 229, bubbles: true }));
    });
    t.equal(page.url(), address, 'no shortcut has run');
  },
);

scene(
  'regression: the indentation of a first line is kept, and an emoji is not cut in half',
  { provider: script([say('Half \ud83d'), say('\ude00 whole.')]) },
  async (t, { page }) => {
    const text = `    indented\n\tmore ${'x'.repeat(4_096 - 21)}👩‍👩‍👧‍👦 ${'y'.repeat(50)}`;
    await write(page, `\n\n${text}\n\n`);
    await page.locator('.row-end', { hasText: 'Done' }).waitFor();
    await shows(t, 'equal', () => page.locator('.answer .prose').textContent(), 'Half 😀 whole.');
    const shown = (await page.locator('.said .written').textContent()) ?? '';
    t.match(shown, /^ {4}indented\n\tmore x/);
    t.match(shown, /x$/, 'the family is whole, behind “Show more”');
    await button(page, 'Show more (62 characters)').click();
    await shows(t, 'equal', () => page.locator('.said .written').textContent(), text);
  },
);

const family = '👩‍👩‍👧‍👦';

scene(
  'regression: the output of a command that runs shows its end, from a whole character on; that of an ended one its beginning',
  {
    provider: script(callTool('Exec', { command: 'sh print.sh' }), say('It ended.')),
    config: autoApprove,
  },
  async (t, { page, served }) => {
    // The cut at 4,096 characters is within the family.
    writeFileSync(join(served.path, 'print.sh'), `printf 'first ${family}'; printf '%04090d' 0; cat pipe`);
    execFileSync('mkfifo', [join(served.path, 'pipe')]);
    await write(page, 'Run it');
    const card = page.getByRole('region', { name: 'Run sh print.sh' });
    /** Words before the zeros, and the length. */
    const output = async () => {
      const text = (await card.locator('pre').last().textContent()) ?? '';
      return [text.slice(0, text.indexOf('0')), text.length];
    };
    await shows(t, 'same', output, [family, family.length + 4_090]);
    await card.getByRole('button', { name: 'Show more (6 characters)' }).click();
    await shows(t, 'same', output, [`first ${family}`, 6 + family.length + 4_090]);
    writeFileSync(join(served.path, 'pipe'), 'the end');
    await page.locator('.row-end').waitFor();
    await page.reload();
    await card.getByRole('button').first().click();
    await shows(t, 'same', output, [`first ${family}`, 4_096]);
  },
);

scene(
  'regression: each tab has its own draft, and one of two equal pictures is removed alone',
  { provider: always(say('Heard.')) },
  async (t, { page, served }) => {
    await box(page).fill('Draft of the first tab');
    const other = await page.context().newPage();
    await other.goto(`${served.url}/DashBoard#${new URLSearchParams({ token: served.token, at: '/chat' })}`);
    await box(other).waitFor();
    t.equal(await box(other).inputValue(), '');
    await box(other).fill('Draft of the second tab');
    await other.close();
    await goTo(page, '/overview');
    await goTo(page, '/chat');
    await box(page).waitFor();
    await shows(t, 'equal', () => box(page).inputValue(), 'Draft of the first tab');
    const dot = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
    const paste = () =>
      box(page).evaluate((element, base64) => {
        const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
        const data = new DataTransfer();
        data.items.add(new File([bytes], 'dot.png', { type: 'image/png' }));
        element.dispatchEvent(new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true }));
      }, dot);
    await paste();
    await button(page, 'Remove picture 1').waitFor();
    await paste();
    await button(page, 'Remove picture 2').click();
    await shows(t, 'equal', () => page.locator('.attached li').count(), 1);
  },
);

scene(
  'regression: after an answer by keyboard the focus is at the next request, then in the box; messages have a day and a time',
  {
    provider: script(
      [callTool('Exec', { command: 'touch one.txt' }), callTool('Exec', { command: 'touch two.txt' })],
      say('Both ran.'),
    ),
  },
  async (t, { page }) => {
    await write(page, 'Run both');
    const approval = page.getByRole('region', { name: 'Approval' });
    const focus = () => page.evaluate(() => document.activeElement?.getAttribute('aria-label') ?? '');
    for (const file of ['one.txt', 'two.txt']) {
      await approval.getByText(`touch ${file}`).waitFor();
      const allow = button(page, 'Allow once');
      await shows(t, 'equal', () => allow.isEnabled(), true);
      await allow.focus();
      await page.keyboard.press('Enter');
      await shows(t, 'equal', focus, file === 'one.txt' ? 'Approval' : 'Message');
    }
    await page.locator('.answer', { hasText: 'Both ran.' }).waitFor();
    await shows(t, 'match', () => page.locator('.said').getAttribute('title'), /\d{2}:\d{2}/);
    await shows(t, 'match', () => page.locator('.day').textContent(), new RegExp(String(new Date().getFullYear())));
  },
);

scene(
  'regression: the question of an undo lists the files; after it they can be brought back',
  {
    provider: script(
      [
        callTool('WriteFile', { path: 'one.txt', content: '1\n' }),
        callTool('WriteFile', { path: 'two.txt', content: '2\n' }),
      ],
      say('Made.'),
    ),
    config: autoApprove,
  },
  async (t, { page, served }) => {
    await write(page, 'Make two files');
    await openThread(page);
    await page.locator('.row-end', { hasText: 'Done' }).waitFor();
    await button(page, 'Undo').click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText('2 files:').waitFor();
    await dialog.getByText('one.txt').waitFor();
    await dialog.getByText('two.txt').waitFor();
    await dialog.getByRole('button', { name: 'Undo' }).click();
    await page.getByRole('status').filter({ hasText: '2 files restored' }).waitFor();
    await page.getByText('What should the agent do?').waitFor();
    t.notOk(existsSync(join(served.path, 'one.txt')));
    await button(page, 'Redo these changes').click();
    await page.getByRole('status').filter({ hasText: '2 files changed again' }).waitFor();
    t.ok(existsSync(join(served.path, 'one.txt')) && existsSync(join(served.path, 'two.txt')));
    await shows(t, 'equal', () => button(page, 'Redo these changes').count(), 0);
  },
);

const open = gate();
scene(
  'regression: a question stands in the column of the conversation, and a phone is told of no keys that it has not',
  {
    provider: script(callTool('Exec', { command: 'touch one.txt' }), [open, say('Ran.')]),
    context: { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true },
  },
  async (t, { page }) => {
    await box(page).fill('Run it');
    await button(page, 'Send').click();
    await page.getByRole('region', { name: 'Approval' }).waitFor();
    await shows(t, 'equal', () => box(page).getAttribute('placeholder'), 'Write to the agent');
    await page.setViewportSize({ width: 1440, height: 900 });
    const left = (at: string) =>
      page.locator(at).evaluate((element) => Math.round(element.getBoundingClientRect().left));
    await shows(t, 'equal', async () => (await left('.approval header')) === (await left('.composer textarea')), true);
    open.open();
  },
);
