/** Writing and reading in the page's chat: links to turns, typing on, sending, pasting, dropping, directions of text. */
import { always, gate, say, script } from '../agent/scripted-provider.ts';
import { box, button, chatStage, openThread, write } from './chat-scene.ts';
import { shows } from './shows.ts';

const { scene } = await chatStage();

const slow = gate();
scene(
  'regression: words typed after the first message stay in the box, with the focus',
  { provider: script([slow, say('Done.')]) },
  async (t, { page }) => {
    let isHeld = true;
    const held: (() => void)[] = [];
    await page.routeWebSocket(/\/dashboard\/ws$/, (socket) => {
      const server = socket.connectToServer();
      socket.onMessage((frame) => {
        if (isHeld && String(frame).includes('"thread/start"')) held.push(() => server.send(frame));
        else server.send(frame);
      });
    });
    await page.reload();
    await write(page, 'Begin');
    await shows(t, 'equal', async () => held.length, 1);
    await page.keyboard.type('go test');
    isHeld = false;
    held[0]?.();
    await openThread(page);
    await page.locator('.said', { hasText: 'Begin' }).waitFor();
    await page.keyboard.type(' it');
    t.equal(await box(page).inputValue(), 'go test it');
    t.match(page.url(), /#\/chat\/thread_/, 'no shortcut has run');
    slow.open();
    await page.locator('.answer', { hasText: 'Done.' }).waitFor();
    await page.reload();
    await page.locator('.said', { hasText: 'Begin' }).waitFor();
    await shows(t, 'equal', () => box(page).inputValue(), 'go test it', 'the draft belongs to the conversation');
    await page.getByRole('link', { name: 'New', exact: true }).click();
    await page.getByText('What should the agent do?').waitFor();
    await shows(t, 'equal', () => box(page).inputValue(), '');
  },
);

const far = Array.from({ length: 130 }, (_, index) => `Question ${index + 1}`);
scene(
  'regression: a link to a turn shows it: in a new tab, after a reload, from another view, and before it was loaded',
  { provider: always(say(`${'A long answer.\n\n'.repeat(12)}The end.`)), at: '/overview' },
  async (t, { page, served, go }) => {
    const threadId = await served.say(...far);
    const isAtTop = async (turn: number) => {
      const said = page.locator('.said').getByText(`Question ${turn}`, { exact: true });
      await said.waitFor();
      const top = await said.evaluate((element) => {
        const log = element.closest('.log');
        return log ? element.getBoundingClientRect().top - log.getBoundingClientRect().top : Number.NaN;
      });
      return top >= -4 && top < 120;
    };
    const link = (turn: number) => `/chat/${threadId}?turn=turn_${String(turn).padStart(3, '0')}`;
    await go(link(120));
    await shows(t, 'equal', () => isAtTop(120), true, 'from another view');
    await page.reload();
    await shows(t, 'equal', () => isAtTop(120), true, 'after a reload');
    await go(link(5));
    await shows(t, 'equal', () => isAtTop(5), true, 'within the thread, before it was loaded');
    const tab = await page.context().newPage();
    await tab.close();
    await go('/overview');
    await go(link(40));
    await shows(t, 'equal', () => isAtTop(40), true, 'not loaded yet, from another view');
  },
);

scene(
  'regression: a message sent while scrolled up is shown',
  { provider: always(say(`${'A long answer.\n\n'.repeat(40)}The end.`)), at: '/overview' },
  async (t, { page, served, go }) => {
    const threadId = await served.say('One', 'Two', 'Three');
    await go(`/chat/${threadId}`);
    await page.getByText('The end.').last().waitFor();
    const log = page.getByRole('log');
    await log.evaluate((element) => element.scrollTo({ top: 0 }));
    await button(page, 'Jump to latest').waitFor();
    await write(page, 'My own words');
    const said = page.locator('.said', { hasText: 'My own words' });
    await said.waitFor();
    await shows(t, 'equal', () => said.evaluate((element) => element.getBoundingClientRect().top < innerHeight), true);
  },
);

scene(
  'regression: a message beyond a frame is refused with its size, and the connection stays',
  { provider: always(say('Heard.')) },
  async (t, { page }) => {
    await box(page).fill('界'.repeat(1_450_000));
    await box(page).press('Enter');
    await page.getByText(/^The message has 4\.\d MiB: at most 4\.0 MiB can be sent/).waitFor();
    t.equal((await box(page).inputValue()).length, 1_450_000, 'the message stays in the box');
    await write(page, 'A short one');
    await page.locator('.answer', { hasText: 'Heard.' }).waitFor();
    t.equal(await page.getByText('Disconnected').count(), 0);
  },
);

scene(
  'regression: a paste with text and a picture gives the text; a drop gives text or refuses a file by its name',
  { provider: always(say('Yes.')) },
  async (t, { page }) => {
    await box(page).focus();
    await page.waitForFunction(() => !location.hash.includes('token='));
    const address = page.url();
    const paste = await box(page).evaluate((element) => {
      const data = new DataTransfer();
      data.setData('text/plain', 'A1\tB1');
      data.items.add(new File([new Uint8Array([1])], 'cells.png', { type: 'image/png' }));
      const event = new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true });
      return element.dispatchEvent(event);
    });
    t.equal(paste, true, 'the browser pastes the text');
    t.equal(await page.getByText('not a readable picture').count(), 0);
    const drop = (at: string, fill: 'text' | 'file') =>
      page.locator(at).evaluate((element, kind) => {
        const data = new DataTransfer();
        if (kind === 'text') data.setData('text/plain', 'dragged words');
        else data.items.add(new File(['a,b'], 'table.csv', { type: 'text/csv' }));
        return element.dispatchEvent(new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true }));
      }, fill);
    await box(page).fill('Before ');
    t.equal(await drop('.composer textarea', 'text'), false);
    await shows(t, 'equal', () => box(page).inputValue(), 'Before dragged words');
    t.equal(await drop('.threads', 'file'), false, 'a drop beside the box does not leave the page');
    await page
      .getByText('table.csv is text/csv, not a picture: mention a file of the workspace with @ instead.')
      .waitFor();
    t.equal(page.url(), address);
  },
);

scene(
  'regression: text from right to left has its direction in box, message and answer, and code keeps its own',
  { provider: always(say('שלום לכולם\n\n- أهلا\n\n`let a = 1` שורה')) },
  async (t, { page }) => {
    await box(page).fill('مرحبا');
    const direction = (at: string) =>
      page
        .locator(at)
        .first()
        .evaluate((element) => getComputedStyle(element).direction);
    t.equal(await direction('.composer textarea'), 'rtl');
    await box(page).press('Enter');
    await page.locator('.answer code').waitFor();
    t.equal(await direction('.said'), 'rtl');
    t.equal(await direction('.answer p'), 'rtl');
    t.equal(await direction('.answer li'), 'rtl');
    t.equal(await direction('.answer code'), 'ltr');
  },
);

scene(
  'regression: the box of messages fits a window of 720 px',
  { provider: always(say('Yes.')), context: { viewport: { width: 720, height: 800 } } },
  async (t, { page }) => {
    await box(page).waitFor();
    const right = await page
      .locator('.composer')
      .evaluate((element) =>
        Math.max(...[...element.querySelectorAll('*')].map((each) => each.getBoundingClientRect().right)),
      );
    t.ok(right <= 720, `its content ends at ${right} px`);
  },
);
