/** Chat where the browser stores nothing, with a message of megabytes, a hostile answer and many threads. */
import { always, say } from '../agent/scripted-provider.ts';
import { Session } from '../appserver/session.ts';
import { box, chatStage, openThread, write } from './chat-scene.ts';
import { axe, overflowsAt } from './scene.ts';

const { scene } = await chatStage();

const threads = 200;
const hostile = [
  '> '.repeat(3_000),
  '*a_'.repeat(1_000),
  '[x](data:text/html,<script>window.stolen=1</script>) [y](blob:x) [z](//evil.example/) <svg onload="window.stolen=1">',
  '![broken](data:image/svg+xml;base64,AAAA)',
  `| a |\n|---|\n${'| b |\n'.repeat(300)}`,
  `\`\`\`js\n${'"'.repeat(30_000)}\n\`\`\``,
  'The end.',
].join('\n\n');

scene(
  'without storage, with a hostile answer, a long message and 200 threads, chat works and its document is bounded',
  { provider: always(say(hostile)), isChanged: true },
  async (t, { page, served, go }) => {
    const session = await Session.open(t, served.server.webSocketUrl);
    for (let index = 0; index < threads; index += 1) {
      await session.call('thread/start', { displayName: `Thread ${index} \u202e\u001b[31m<b>` });
    }
    await page.addInitScript(() => {
      const full = () => {
        throw new DOMException('full', 'QuotaExceededError');
      };
      Object.defineProperty(window, 'localStorage', { value: { getItem: full, setItem: full, removeItem: full } });
    });
    await page.reload();
    const list = page.getByRole('region', { name: 'Conversations' });
    await list.getByText('Thread 199').waitFor();
    const names = (await list.textContent()) ?? '';
    t.notOk(names.includes('\u202e') || names.includes('\u001b'), 'names turn nothing around');

    // Each takes six bytes of a frame. A browser takes a minute to break the lines of megabytes of letters.
    const long = '\u0001'.repeat(720_000);
    await box(page).fill(long);
    await box(page).press('Enter');
    await page.getByText(/^The message has 4\.1 MiB: at most .* Shorten it/).waitFor();
    t.ok((await box(page).inputValue()) === long, 'it is not lost');

    await write(page, `${'long '.repeat(40_000)}end`);
    await openThread(page);
    await page.locator('.row-end', { hasText: 'Done' }).waitFor();
    await page.locator('.answer', { hasText: 'The end.' }).waitFor();
    t.ok(((await page.locator('.said').textContent()) ?? '').length < 5_000, 'the message is shown in part');
    t.ok((await page.locator('.answer tr').count()) <= 201, 'the table is shown in part');
    t.ok((await page.locator('.answer *').count()) < 2_000, 'the answer is bounded');
    t.same(await page.locator('.answer a').count(), 0, 'no address of the answer can be followed');
    t.equal(await page.evaluate(() => (window as unknown as { stolen?: number }).stolen), undefined);
    t.same(await axe(page), []);
    t.equal(await overflowsAt(page, 390), false);
    await go('/chat');
    await list.getByRole('searchbox').fill('Thread 42');
    await list.getByText('Thread 42').waitFor();
  },
);
