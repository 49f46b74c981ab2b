/** A long thread: bounded nodes in the document, older turns read on demand, and a reader who stays in place. */
import { always, say } from '../agent/scripted-provider.ts';
import { chatStage } from './chat-scene.ts';
import { axe } from './scene.ts';
import { shows } from './shows.ts';

const { scene } = await chatStage();

/** More than two readings of 50 turns. */
const turns = 120;
const inputs = Array.from({ length: turns }, (_, index) => `Question ${index + 1}.`);
const answer = ['It is **so**.', '- one\n- two', '```ts\nconst a: number = 1;\n```'].join('\n\n');

scene(
  'a long thread is read on demand: bounded nodes, the place kept, and a link to a turn that leads to it',
  { provider: always(say(answer)) },
  async (t, { page, served, go }) => {
    const threadId = await served.say(...inputs);
    const log = page.getByRole('log');
    const said = (number: number) => log.locator('.said').getByText(`Question ${number}.`, { exact: true });
    const reads: string[] = [];
    page.on('websocket', (socket) =>
      socket.on('framesent', ({ payload }) => {
        if (String(payload).includes('"thread/read"')) reads.push(String(payload));
      }),
    );
    await go(`/chat/${threadId}`);
    await said(turns).waitFor();
    await log.locator('.code-keyword', { hasText: 'const' }).first().waitFor();
    await shows(t, 'equal', async () => (await log.locator('.row').count()) < 60, true);
    t.equal(reads.length, 1, 'one reading opens it');
    t.same(await axe(page), [], 'coloured code has enough contrast in light and dark');

    await log.evaluate((element) => element.scrollTo(0, 0));
    await shows(t, 'equal', async () => reads.length, 2);
    const isInSight = async (number: number) => {
      const [view, row] = await Promise.all([log.boundingBox(), said(number).boundingBox()]);
      return row !== null && view !== null && row.y >= view.y && row.y < view.y + view.height;
    };
    await shows(t, 'equal', () => log.evaluate((element) => element.scrollTop > 0), true, 'rows were added above');
    await shows(t, 'equal', () => isInSight(turns - 49), true, 'the reader is where they were');
    t.equal(await said(1).count(), 0, 'what lies above is not there yet');

    const first = page.locator('.end').getByRole('link', { name: 'Permalink' }).first();
    const href = (await first.getAttribute('href')) ?? '';
    t.match(href, new RegExp(`^#/chat/${threadId}\\?turn=turn_`));
    await go(`/chat/${threadId}?turn=turn_001`);
    await said(1).waitFor();
    await shows(t, 'equal', () => isInSight(1), true, 'the turn is in sight');
    t.ok((await log.locator('.row').count()) < 60, 'still few rows are in the document');
    await go(`/chat/${threadId}?turn=turn_nowhere`);
    await said(turns).waitFor();
  },
);
