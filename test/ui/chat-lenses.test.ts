/** Lenses of a conversation: changes, trace, chart and events at one moment, over a real agent server. */
import type { Locator, Page } from 'playwright-core';
import type { Test } from 'tap';
import { callTool, fail, finish, say, script, think, usage } from '../agent/scripted-provider.ts';
import { button, chatStage, openThread, write } from './chat-scene.ts';
import { axe, overflowsAt, smallTargets } from './scene.ts';
import { shows } from './shows.ts';

const { scene } = await chatStage();
const config = { Permissions: { DefaultApprovalPolicy: 'autoApprove' } };
const twoRounds = () =>
  script(
    [
      think('I write it first.'),
      callTool('WriteFile', { path: 'made.txt', content: 'by the agent\n' }, 'call_write'),
      callTool('Exec', { command: 'cat made.txt' }, 'call_cat'),
      usage(1_000, 20),
      finish('toolCalls'),
    ],
    [say('It is made.'), usage(1_200, 10), finish('stop')],
  );

const tab = (page: Page, name: string) => page.getByRole('tablist', { name: 'Lens' }).getByRole('tab', { name });
const panel = (page: Page, name: string) => page.getByRole('tabpanel', { name });
const call = (page: Page, name: string): Locator => page.locator('.talk').getByRole('region', { name });
const current = (page: Page) => panel(page, 'Trace').locator('.vrow[aria-current=true]');
const query = (page: Page) => new URLSearchParams(new URL(page.url()).hash.split('?')[1]);
const ended = (page: Page) => page.locator('.row-end').last().waitFor();

scene(
  'a pressed call is selected in every lens, and the address restores it',
  { provider: twoRounds(), config },
  async (t, { page, go }) => {
    await write(page, 'Make it');
    const threadId = await openThread(page);
    await ended(page);
    await shows(t, 'same', () => page.getByRole('tab').allTextContents(), ['Changes', 'Trace', 'Chart', 'Raw']);
    await tab(page, 'Trace').click();
    await panel(page, 'Trace').getByRole('treegrid').waitFor();
    t.equal(await current(page).count(), 0, 'no earlier moment is selected');

    await call(page, 'Write made.txt').getByRole('button').first().click();
    await shows(t, 'match', () => current(page).textContent(), 'Write made.txt');
    await shows(t, 'equal', () => call(page, 'Write made.txt').getAttribute('aria-current'), 'true');
    t.match(query(page).get('at'), /^\d{13}$/);
    t.equal(query(page).get('call'), 'call_write');

    await tab(page, 'Trace').press('c');
    await shows(
      t,
      'equal',
      () => panel(page, 'Changes').locator('.file-change', { hasText: 'made.txt' }).getAttribute('aria-current'),
      'true',
    );
    await page.keyboard.press('h');
    await page.getByRole('img', { name: /^Statechart turn\. Active: / }).waitFor();
    await page.locator('.edge.last').first().waitFor();
    await shows(t, 'match', () => panel(page, 'Chart').locator('.about.state').textContent(), /running ?tools/i);
    await page.keyboard.press('h');
    await panel(page, 'Chart').waitFor({ state: 'detached' });
    await tab(page, 'Raw').click();
    await shows(
      t,
      'match',
      () => panel(page, 'Raw').locator('.vrow[aria-selected=true]').textContent(),
      'tool.started',
    );

    await tab(page, 'Trace').click();
    const address = new URL(page.url()).hash.slice(1);
    await page.reload();
    await shows(t, 'match', () => current(page).textContent(), 'Write made.txt');
    await shows(t, 'equal', () => call(page, 'Write made.txt').getAttribute('aria-current'), 'true');
    await go(`/chat/${threadId}`);
    await panel(page, 'Trace').waitFor({ state: 'detached' });
    await go(address);
    await shows(t, 'match', () => current(page).textContent(), 'Write made.txt', 'a link restores the moment');

    await panel(page, 'Trace').locator('.vrow', { hasText: 'cat made.txt' }).last().locator('.span-name').click();
    await shows(
      t,
      'equal',
      () => call(page, 'Run cat made.txt').getAttribute('aria-current'),
      'true',
      'the messages follow',
    );
    t.equal(query(page).get('call'), 'call_cat');
    await button(page, 'Live').click();
    await page.waitForURL((url) => !url.hash.includes('at='));
    await shows(t, 'equal', () => current(page).count(), 0);
    await tab(page, 'Trace').click();
    await panel(page, 'Trace').waitFor({ state: 'detached' });
  },
);

scene(
  'the strip in the header moves every lens through time, by pointer and by keys',
  { provider: twoRounds(), config },
  async (t, { page }) => {
    await write(page, 'Make it');
    await openThread(page);
    await ended(page);
    const strip = page.locator('.desk').getByRole('img', { name: /^(?:\d+ % [a-z ]+, )+\d/ });
    const name = await strip.getAttribute('aria-label');
    const link = page.locator('.desk').getByRole('link', { name: /^(?:\d+ % [a-z ]+, )+\d/ });
    await link.click();
    const slider = page.getByRole('slider', { name: 'Moment' });
    await slider.waitFor();
    await shows(t, 'equal', () => strip.getAttribute('aria-label'), name, 'the sums are unchanged');
    await shows(t, 'equal', () => slider.getAttribute('aria-valuetext'), 'the end');
    await slider.focus();
    await page.keyboard.press('ArrowLeft');
    await page.waitForURL(/at=\d+/);
    await current(page).waitFor();
    const last = Number(query(page).get('at'));
    await page.keyboard.press('ArrowLeft');
    await page.waitForURL((url) => Number(new URLSearchParams(url.hash.split('?')[1]).get('at')) < last);
    await shows(t, 'match', () => slider.getAttribute('aria-valuetext'), /^\d\d:\d\d:\d\d/);
    await slider.press('Home');
    await shows(t, 'match', () => current(page).textContent(), 'Make it');
    await button(page, 'Step forward').click();
    await page.waitForURL((url) => Number(new URLSearchParams(url.hash.split('?')[1]).get('at')) > 0);
    await button(page, 'Live').click();
    await page.waitForURL((url) => !url.hash.includes('at='));
  },
);

scene(
  'regression: the trace is a tree of rounds with time, tokens and cost, with the labels of the messages',
  { provider: twoRounds(), config },
  async (t, { page }) => {
    await write(page, 'Make it');
    await openThread(page);
    await ended(page);
    await tab(page, 'Trace').click();
    const rows = panel(page, 'Trace').locator('.vrow');
    const texts = () => rows.locator('.span-name').allTextContents();
    const round = rows.filter({ hasText: /Round 1/ });
    await shows(t, 'match', () => round.textContent(), /Round 1 → Write made\.txt, Run cat made\.txt/);
    await shows(t, 'equal', () => round.getAttribute('aria-level'), '2');
    await rows.filter({ hasText: 'Round 2' }).waitFor();
    for (const cell of await panel(page, 'Trace').getByRole('gridcell').allTextContents())
      t.notMatch(cell.trim(), /^\{/, 'no arguments as JSON');
    const thinking = rows.filter({ hasText: /Thinking I write it/ });
    t.equal(await thinking.count(), 0, 'a request is folded');
    await rows.filter({ hasText: 'Request to' }).first().getByRole('button', { name: 'Unfold this request' }).click();
    await thinking.waitFor();
    await shows(t, 'equal', () => thinking.getAttribute('aria-level'), '4');
    t.notOk(
      (await texts()).some((text) => text.includes('Approval')),
      'an approval by a rule does not ask the user',
    );
    await rows
      .filter({ hasText: 'Write made.txt' })
      .last()
      .getByText('allowed by a rule')
      .waitFor({ state: 'attached' });
    await round.getByRole('button', { name: 'Fold this round' }).click();
    await rows.filter({ hasText: 'Request to' }).nth(1).waitFor({ state: 'detached' });
    await panel(page, 'Trace').getByRole('columnheader', { name: 'Tokens' }).getByRole('button').click();
    const order = async () => (await texts()).filter((text) => text.includes('Round')).join(' ');
    await shows(t, 'match', order, /Round 2.*Round 1/, 'the most tokens first');
  },
);

for (const lens of ['changes', 'trace', 'chart', 'raw'] as const) {
  scene(
    `the lens ${lens} passes axe in light and dark, and covers the messages on a phone`,
    { provider: twoRounds(), config },
    async (t: Test, { page, go }) => {
      await write(page, 'Make it');
      const threadId = await openThread(page);
      await ended(page);
      await go(`/chat/${threadId}?lens=${lens}`);
      await page.getByRole('tabpanel').locator('.vrow, .file-change, svg[role=img]').first().waitFor();
      t.same(await axe(page), []);
      t.same(await smallTargets(page), []);
      t.notOk(await overflowsAt(page, 390));
      await page.locator('.talk').waitFor({ state: 'hidden' });
      t.same(await axe(page), []);
      t.same(await smallTargets(page), []);
      t.notOk(await overflowsAt(page, 720), '200 % of a laptop');
      await page.getByRole('link', { name: '‹ Messages' }).click();
      await page.locator('.talk').waitFor();
    },
  );
}

scene(
  'regression: a pause before a repeated request is on the strip, in the head, in the list and as a slider',
  {
    provider: script([fail('upstreamFailed', 'overloaded', 400)], [say('Now it works.'), usage(10, 5), finish('stop')]),
    config,
  },
  async (t, { page }) => {
    await write(page, 'Try it');
    await openThread(page);
    await ended(page);
    const strips = page.getByRole('img', { name: /\d+ % paused, \d+ % model, \d/ });
    await shows(t, 'equal', () => strips.count(), 2, 'the head and the list');
    const names = () => strips.evaluateAll((all) => all.map((strip) => strip.getAttribute('aria-label')));
    await shows(t, 'equal', async () => new Set(await names()).size, 1, 'both have the same sums');
    const [head] = await names();
    await tab(page, 'Trace').click();
    const widthOf = (part: Locator) => part.evaluateAll((all) => all.reduce((sum, each) => sum + each.clientWidth, 0));
    const slider = page.getByRole('group', { name: 'Time' }).locator('.state-strip');
    await slider.waitFor();
    const share = (await widthOf(slider.locator('.pauses'))) / (await widthOf(slider.locator('i')));
    const named = Number(/(\d+) % paused/.exec(head ?? '')?.[1]) / 100;
    t.ok(Math.abs(share - named) <= 0.03, `the slider shows ${share} for ${named}`);
  },
);

scene(
  'regression: a workspace has one list of conversations, with state, agent, strip and cost, by age',
  { provider: twoRounds(), config },
  async (t, { page, go }) => {
    await write(page, 'Make it');
    const threadId = await openThread(page);
    await ended(page);
    const views = page.getByRole('navigation', { name: 'Views' });
    const titles = await views.getByRole('link').allTextContents();
    t.same(
      titles.filter((title) => /session|trace|conversation/i.test(title)),
      ['Conversations'],
    );
    const today = page.getByRole('region', { name: 'Today' });
    const row = today.getByRole('link', { name: /^Make it/ });
    await row.getByRole('img', { name: /% model/ }).waitFor();
    await shows(t, 'match', () => row.textContent(), /\$|free|price unknown/);
    const search = page.getByRole('searchbox', { name: 'Search conversations' });
    await search.fill('running');
    await row.waitFor({ state: 'detached' });
    await search.fill('make');
    await row.waitFor();
    t.same(await axe(page), []);

    await tab(page, 'Trace').click();
    await page.getByRole('link', { name: 'Filter, export and read the whole trace' }).click();
    await page.getByRole('link', { name: '← Conversation' }).click();
    await page.waitForURL((url) => url.hash === `#/chat/${threadId}`);
    await go('/overview');
    const recent = page.getByRole('region', { name: 'Recent conversations' });
    const link = recent.getByRole('link', { name: 'Make it' });
    await shows(t, 'equal', () => link.getAttribute('href'), `#/chat/${threadId}`);
    await page.getByRole('link', { name: 'Stored traces' }).click();
    await page.getByRole('grid', { name: 'Traces' }).getByRole('row', { name: 'Make it' }).waitFor();
  },
);
