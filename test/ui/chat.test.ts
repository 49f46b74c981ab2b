/** Chat in the page: one conversation over a real agent server, seen at once by a second client. */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { always, callTool, gate, say, script, think } from '../agent/scripted-provider.ts';
import { Client, words } from '../appserver/harness.ts';
import { box, button, chatStage, openThread, write } from './chat-scene.ts';
import { axe, overflowsAt, pressable, smallTargets } from './scene.ts';
import { shows } from './shows.ts';

const { scene } = await chatStage();

const first = gate();
scene(
  'a message begins a thread, the answer streams as Markdown, and the page and a second client see the same at once',
  {
    provider: script(
      [think('Let me see.'), say('Here is a **list**:\n\n- one\n- tw'), first, say('o\n\nand `code`.')],
      say('To the *second* client.'),
    ),
  },
  async (t, { page, served }) => {
    await write(page, 'What is here?');
    const threadId = await openThread(page);
    await page.locator('.said', { hasText: 'What is here?' }).waitFor();
    await page.locator('.answer li', { hasText: 'tw' }).waitFor();
    await shows(t, 'equal', () => page.locator('.answer strong').textContent(), 'list');
    await page.getByRole('status').filter({ hasText: 'Working' }).waitFor();
    await button(page, 'Stop').waitFor();
    const client = await Client.ready(t, served.server.webSocketUrl);
    await client.call('thread/resume', { threadId });
    first.open();
    await page.locator('.answer code', { hasText: 'code' }).waitFor();
    await page.locator('.row-end', { hasText: 'Done' }).waitFor();
    t.match(await client.notification('turn/completed'), { params: { threadId } });
    await client.call('turn/start', { threadId, input: words('From the terminal.') });
    await page.locator('.said', { hasText: 'From the terminal.' }).waitFor();
    await page.locator('.answer em', { hasText: 'second' }).waitFor();
    await shows(t, 'equal', () => page.locator('.said').count(), 2);
    t.equal(await page.locator('main').count(), 1);
    t.equal(await page.getByRole('log').count(), 1);
    t.same(await axe(page), []);
    t.same(await smallTargets(page), []);
  },
);

scene(
  'a thread begun before the lists were read gives no complaint of the connection that was left',
  { provider: script([say('Hello.')]), at: '/overview' },
  async (t, { page, go }) => {
    let held = 0;
    await page.routeWebSocket(/\/dashboard\/ws$/, (socket) => {
      const server = socket.connectToServer();
      socket.onMessage((frame) => {
        // The first connection never gets its list of commands.
        const isHeld = held === 0 && String(frame).includes('"command/list"');
        if (isHeld) held += 1;
        else server.send(frame);
      });
    });
    await page.reload();
    await go('/chat');
    await shows(t, 'equal', async () => held, 1);
    await write(page, 'Hello');
    await page.locator('.answer', { hasText: 'Hello.' }).waitFor();
    await page.locator('.row-end', { hasText: 'Done' }).waitFor();
    t.equal(await page.getByText('The connection was lost.').count(), 0);
  },
);

scene(
  'regression: a conversation begun in a terminal is named by its first words everywhere, not by its id',
  { provider: always(say('Yes.')), at: '/overview' },
  async (t, { page, served, go }) => {
    const threadId = await served.say('Explain the harbour plan\nin detail');
    const client = await Client.ready(t, served.server.webSocketUrl);
    const { thread: empty } = await client.call('thread/start', {});
    await go('/chat');
    const threads = page.getByRole('region', { name: 'Conversations' });
    await threads.getByRole('link', { name: /^Explain the harbour plan/ }).click();
    t.equal(await openThread(page), threadId);
    await page.getByRole('heading', { level: 1, name: 'Explain the harbour plan', exact: true }).waitFor();
    await threads.getByRole('link', { name: /^New conversation/ }).waitFor();
    t.notMatch(await threads.textContent(), 'thread_');
    await client.call('turn/start', { threadId: empty.id, input: words('Count the boats') });
    await threads.getByRole('link', { name: /^Count the boats/ }).waitFor();
    await go('/sessions');
    await page.getByText('Explain the harbour plan').first().waitFor();
    await page.getByText('Count the boats').first().waitFor();
  },
);

scene(
  'regression: a thread that is archived before the connection is open is archived once it is',
  { provider: always(say('Yes.')), at: '/overview' },
  async (t, { page, served, go }) => {
    const threadId = await served.say('An earlier talk');
    let isHeld = false;
    const held: (() => void)[] = [];
    await page.routeWebSocket(/\/dashboard\/ws$/, (socket) => {
      const server = socket.connectToServer();
      socket.onMessage((frame) => {
        if (isHeld) held.push(() => server.send(frame));
        else server.send(frame);
      });
    });
    await page.reload();
    await go(`/chat/${threadId}`);
    await page.locator('.answer', { hasText: 'Yes.' }).waitFor();
    isHeld = true;
    await go('/chat');
    await page.getByRole('heading', { name: 'New conversation' }).waitFor();
    const threads = page.getByRole('region', { name: 'Conversations' });
    await threads.getByRole('button', { name: /^Archive/ }).click();
    isHeld = false;
    for (const send of held) send();
    await threads.getByText('No conversations yet.').waitFor();
    t.equal(await page.getByText('There is no connection').count(), 0);
  },
);

const running = gate();
scene(
  'while a turn runs Enter queues, Ctrl+Enter adds to the turn, and Esc stops it; queued messages stay until sent',
  { provider: script([say('Working on it.'), running], say('Never asked.'), say('Now the queued one.')) },
  async (t, { page, served }) => {
    await write(page, 'Begin');
    const threadId = await openThread(page);
    await page.locator('.answer', { hasText: 'Working on it.' }).waitFor();
    await write(page, 'Then this');
    await page.locator('.queue li', { hasText: 'Then this' }).waitFor();
    await box(page).fill('And mind that');
    await box(page).press('Control+Enter');
    await shows(t, 'equal', () => box(page).inputValue(), '');
    await box(page).press('Escape');
    await page.locator('.row-end', { hasText: 'Interrupted' }).waitFor();
    await page.locator('.queue li', { hasText: 'Then this' }).waitFor();
    await button(page, 'Edit').click();
    await shows(t, 'equal', () => box(page).inputValue(), 'Then this');
    await shows(t, 'equal', () => page.locator('.queue li').count(), 0);
    await box(page).fill('Draft that stays');
    await page.reload();
    await page.locator('.said', { hasText: 'Begin' }).waitFor();
    await shows(t, 'equal', () => box(page).inputValue(), 'Draft that stays');
    const client = await Client.ready(t, served.server.webSocketUrl);
    const { thread } = await client.call('thread/read', { threadId, includeTurns: true });
    t.match(thread, { queuedInputs: [], turns: [{ status: 'cancelled', interruptedBy: 'user' }] });
  },
);

scene(
  'an approval shows the whole command, takes no answer at once, and runs when it is allowed; one that is answered elsewhere goes',
  {
    provider: script(
      callTool('Exec', { command: `touch allowed.txt && echo ${'long '.repeat(60)}END` }),
      say('It ran.'),
      callTool('Exec', { command: 'touch elsewhere.txt' }),
      say('It ran, too.'),
      callTool('WriteFile', { path: 'a.txt', content: 'new line\n' }),
      say('Not written.'),
      callTool('AskUser', {
        questions: [
          { header: 'Library', question: 'Which one?', options: [{ label: 'zod' }, { label: 'valibot' }] },
          {
            header: 'Tests',
            question: 'Which tests?',
            multiSelect: true,
            options: [{ label: 'unit' }, { label: 'e2e' }],
          },
        ],
      }),
      say('Thanks.'),
    ),
  },
  async (t, { page, served }) => {
    await write(page, 'Run it');
    const threadId = await openThread(page);
    const approval = page.getByRole('region', { name: 'Approval' });
    await approval.locator('pre', { hasText: /END$/ }).waitFor();
    await shows(t, 'match', () => approval.locator('pre').textContent(), /^touch allowed\.txt && echo (long )+END$/);
    const views = page.getByRole('navigation', { name: 'Views' });
    await views.getByRole('link', { name: 'Conversations, 1 waiting', exact: true }).waitFor();
    await shows(
      t,
      'match',
      () => page.title(),
      /^\(1\) Run it · Conversations/,
      'regression: a waiting approval calls in the title',
    );
    const name = page.locator('.rail a', { has: page.locator('.badge') }).locator('.cut');
    const hidden = () => name.evaluate(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth);
    await shows(t, 'equal', hidden, 0, 'regression: the count does not cut the name of the view');
    await button(page, 'Allow once').click();
    await page.locator('.answer', { hasText: 'It ran.' }).waitFor();
    await page.locator('.card', { hasText: 'Allowed, ' }).waitFor();
    await views.getByRole('link', { name: 'Conversations', exact: true }).waitFor();
    await shows(t, 'match', () => page.title(), /^Run it · Conversations/);
    const client = await Client.ready(t, served.server.webSocketUrl, { approvalSupport: true });
    await client.call('thread/subscribe', { threadId });
    await write(page, 'Again');
    const request = await client.notification('item/approval/request');
    await approval.getByText('touch elsewhere.txt').waitFor();
    client.send({ jsonrpc: '2.0', id: request.id, result: { decision: 'accept' } });
    await page.locator('.answer', { hasText: 'It ran, too.' }).waitFor();
    await page.locator('.card', { hasText: /Allowed by \S+, / }).waitFor();
    await shows(t, 'equal', () => approval.count(), 0);
    await write(page, 'And write');
    await approval.locator('.diff .added', { hasText: 'new line' }).waitFor();
    t.same(await axe(page), []);
    await button(page, 'Decline').click();
    await page.locator('.answer', { hasText: 'Not written.' }).waitFor();
    await page.locator('.card', { hasText: 'Declined, ' }).waitFor();
    await page.locator('.card', { hasText: 'not allowed' }).waitFor();
    await page.reload();
    await page.locator('.card', { hasText: /Allowed on a page, / }).waitFor();
    await page.locator('.card', { hasText: /Allowed by \S+, / }).waitFor();
    await page.locator('.card', { hasText: /Declined on a page, / }).waitFor();
    await write(page, 'Ask me');
    const question = page.getByRole('region', { name: 'Question' });
    await question.getByRole('radio', { name: 'valibot' }).check();
    t.same(await axe(page), []);
    const desktop = page.viewportSize();
    t.notOk(await overflowsAt(page, 390), 'a question fits a phone');
    t.same(await smallTargets(page, 32, pressable), [], 'targets of a question on a phone');
    if (desktop) await page.setViewportSize(desktop);
    await button(page, 'Answer').click();
    await page.getByText(/Tests: An answer is missing/).waitFor();
    await question.getByRole('checkbox', { name: 'unit' }).check();
    await question.getByRole('textbox', { name: 'Tests: in your own words' }).fill('by hand');
    await button(page, 'Answer').click();
    await page.locator('.answer', { hasText: 'Thanks.' }).waitFor();
    const { thread } = await client.call('thread/read', { threadId, includeTurns: true, turnLimit: 1 });
    const result = { type: 'toolResult', text: 'The user answered:\nLibrary: valibot\nTests: unit, by hand' };
    t.match(
      thread.turns[0].items.filter(({ type }: { readonly type: string }) => type === 'toolResult'),
      [result],
    );
  },
);

const hostile = [
  '<img src="https://evil.example/x.png" onerror="window.stolen=1"><script>window.stolen=1</script>',
  '',
  '![pixel](https://evil.example/p.png) [go](javascript:window.stolen=1) [there](https://evil.example/) <b>bold</b> &copy;',
  '',
  `\u202Egnp.exe \u001b[31mred\u001b[0m ${'[x]('.repeat(200)}`,
  '',
  '```html\n<script>window.stolen=1</script>\n```',
].join('\n');
scene(
  'hostile Markdown is inert text: no picture, no foreign request, only web links, and hidden characters are shown',
  { provider: always(say(hostile)) },
  async (t, { page }) => {
    await write(page, hostile);
    await openThread(page);
    await page.locator('.row-end').waitFor();
    t.equal(await page.locator('main img, iframe, object, embed, main script').count(), 0);
    t.same(
      await page
        .locator('.answer a')
        .evaluateAll((links) => links.map((link) => [link.getAttribute('href'), (link as HTMLAnchorElement).rel])),
      [
        ['https://evil.example/p.png', 'noreferrer'],
        ['https://evil.example/', 'noreferrer'],
      ],
    );
    const text = await page.locator('.answer').textContent();
    t.match(text, /<b>bold<\/b> ©/);
    t.match(text, /<U\+202E>gnp\.exe ␛\[31mred/);
    t.notOk(text?.includes('\u202e') || text?.includes('\u001b'));
    t.equal(await page.evaluate(() => (window as unknown as { stolen?: number }).stolen), undefined);
  },
);

const many = Array.from({ length: 40 }, (_, index) => `Paragraph ${index}.`).join('\n\n');
scene(
  'a person who has scrolled up is left there while rows are added, and jumps to the latest; failed calls are open, long output is cut',
  {
    provider: script(
      say(many),
      [callTool('ReadFile', { path: 'missing.txt' }), callTool('Exec', { command: 'seq 1 3000' })],
      say('The end of it.'),
    ),
    config: { Permissions: { Rules: [{ Tool: 'Exec', Prefix: ['seq'], Decision: 'allow' }] } },
  },
  async (t, { page, served }) => {
    await write(page, 'Much');
    const threadId = await openThread(page);
    await page.locator('.row-end').waitFor();
    const log = page.getByRole('log');
    await log.evaluate((element) => element.scrollTo(0, 0));
    await button(page, 'Jump to latest').waitFor();
    // The person's own message would be shown.
    const client = await Client.ready(t, served.server.webSocketUrl);
    await client.call('thread/subscribe', { threadId });
    await client.call('turn/start', { threadId, input: words('More') });
    await client.notification('turn/completed');
    await page.locator('.connection.live').waitFor();
    await page.locator('.doing', { hasText: 'Done' }).waitFor();
    t.equal(await log.evaluate((element) => element.scrollTop), 0);
    await button(page, 'Jump to latest').click();
    await page.locator('.answer', { hasText: 'The end of it.' }).waitFor();
    const failed = page.locator('.card.danger');
    await shows(t, 'equal', () => failed.getByRole('button').first().getAttribute('aria-expanded'), 'true');
    const command = page.locator('.card', { hasText: 'seq 1 3000' });
    await shows(t, 'equal', () => command.getByRole('button').first().getAttribute('aria-expanded'), 'false');
    await command.getByRole('button').first().click();
    await command.getByText('Show more').waitFor();
    t.ok(((await command.locator('pre').textContent()) ?? '').length < 4_200);
  },
);

scene(
  'threads are found, renamed and archived; the page fits a phone, where the list and a conversation are one after the other',
  { provider: always(say('Yes.')), context: { viewport: { width: 390, height: 844 }, hasTouch: true } },
  async (t, { page, served, go }) => {
    const threadId = await served.say('An earlier talk');
    await go('/chat');
    const threads = page.getByRole('region', { name: 'Conversations' });
    await threads.getByRole('link').filter({ hasText: /\S/ }).nth(1).waitFor();
    t.equal(await overflowsAt(page, 390), false, 'the list');
    await threads.getByRole('button', { name: /^Rename/ }).click();
    await page.getByRole('textbox', { name: 'Name' }).fill('Renamed here');
    await button(page, 'Rename').click();
    await threads.getByText('Renamed here').click();
    await page.locator('.answer', { hasText: 'Yes.' }).waitFor();
    t.equal(await openThread(page), threadId);
    t.equal(await overflowsAt(page, 390), false, 'the conversation');
    t.equal(await box(page).evaluate((element) => getComputedStyle(element).fontSize), '16px');
    t.same(await axe(page), []);
    await page.getByRole('link', { name: /‹ Conversations/ }).click();
    await threads.getByRole('button', { name: /^Archive/ }).click();
    await threads.getByText('No conversations yet.').waitFor();
    await threads.getByRole('searchbox').fill('renamed');
    await threads.getByRole('checkbox').check();
    await threads.getByText('archived', { exact: true }).waitFor();
    t.same(await axe(page), []);
  },
);

scene(
  'pictures are pasted as data, a broken one is refused with words, and a conversation that does not exist says so',
  { provider: always(say('A square.')) },
  async (t, { page, go }) => {
    const paste = (name: string, base64: string) =>
      box(page).evaluate(
        (element, [name, base64]) => {
          const bytes = Uint8Array.from(atob(base64 ?? ''), (letter) => letter.charCodeAt(0));
          const data = new DataTransfer();
          data.items.add(new File([bytes], name ?? '', { type: 'image/png' }));
          element.dispatchEvent(new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true }));
        },
        [name, base64] as const,
      );
    await paste('broken.png', btoa('no picture'));
    await page.getByText('broken.png is not a readable picture.').waitFor();
    await paste(
      'dot.png',
      'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
    );
    await button(page, 'Remove picture 1').waitFor();
    await page.reload();
    await button(page, 'Remove picture 1').waitFor();
    t.pass('an attached picture outlives a reload');
    await write(page, 'What is this?');
    await openThread(page);
    await page.locator('.answer', { hasText: 'A square.' }).waitFor();
    await go('/chat/thread_nowhere');
    await page.getByText('This conversation does not exist').waitFor();
    await shows(t, 'equal', () => box(page).isDisabled(), true);
  },
);

scene(
  'undo restores the files of a turn, names uncovered changes, and asks before it overwrites changes of others',
  {
    provider: script(callTool('WriteFile', { path: 'made.txt', content: 'by the agent\n' }), say('Made.')),
    config: { Permissions: { DefaultApprovalPolicy: 'autoApprove' } },
  },
  async (t, { page, served }) => {
    const file = join(served.path, 'made.txt');
    execFileSync('mkfifo', [join(served.path, 'pipe')]);
    await write(page, 'Make it');
    await openThread(page);
    await page.locator('.answer', { hasText: 'Made.' }).first().waitFor();
    await page.locator('.row-end').waitFor();
    writeFileSync(file, 'by a person\n');
    await button(page, 'Undo').click();
    await page.getByRole('dialog').getByText('pipe (not a file, directory or link)').waitFor();
    await page.getByRole('dialog').getByText('Outside of the workspace nothing is taken back').waitFor();
    await page.getByRole('dialog').getByRole('button', { name: 'Undo' }).click();
    await page
      .getByRole('dialog')
      .getByText(/made\.txt \(\w+ by you\)/)
      .waitFor();
    await page.getByRole('dialog').getByText('pipe (not a file, directory or link)').waitFor();
    t.equal(readFileSync(file, 'utf8'), 'by a person\n');
    await page.getByRole('dialog').getByRole('button', { name: 'Overwrite' }).click();
    await page.locator('.row').first().waitFor({ state: 'detached' });
    t.notOk(existsSync(file));
  },
);
