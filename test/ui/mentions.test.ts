/** Mentions in the composer: files are offered for the typed text, and a message takes an offered one for the same file. */
import t from 'tap';
import { messageOf } from '../../src/ui/views/chat/composer/message.ts';
import { mentionBefore, offerFor } from '../../src/ui/views/chat/composer/suggestions.ts';

const paths = ['src/app/router.ts', 'docs/read me.md', 'Makefile', 'a b'];
const offered = (text: string) => offerFor(text, text.length, { commands: [], files: () => paths });

t.test('files are offered after @, and a message mentions the very file', async (t) => {
  for (const path of paths) {
    const text = `look at @${path.slice(0, 1)}`;
    const offer = offered(text);
    const chosen = offer?.suggestions.find((each) => each.text.includes(path));
    t.ok(chosen, path);
    const message = `${text.slice(0, offer?.from)}${chosen?.text}please`;
    const [, file] = messageOf(message, [], []);
    t.match(file, { type: 'fileRef', path: /[./]/.test(path) ? path : `./${path}` });
  }
});

t.test('the word of a mention ends with a blank, unless it is in quotes', async (t) => {
  t.equal(mentionBefore('see @src/a', 10), 'src/a');
  t.equal(mentionBefore('see @src/a', 6), 's');
  t.equal(mentionBefore('@', 1), '');
  t.equal(mentionBefore('see @"read m', 12), 'read m');
  t.equal(mentionBefore('see @src/a b', 12), null);
  t.equal(mentionBefore('me@example.com', 14), null, 'an address is no mention');
  t.equal(offered('see @"read m')?.from, 4);
});

t.test('a resource of an MCP server is not a file, and stays in the text', (t) => {
  const written = 'compare @docs:file:///guide.md with @src/a.ts';
  t.same(messageOf(written, [], []), [
    { type: 'text', text: written },
    { type: 'fileRef', path: 'src/a.ts', displayPath: 'src/a.ts' },
  ]);
  const prompt = { name: 'all:triage', description: '', path: '' };
  t.same(messageOf('/all:triage 4711', [], [prompt]), [
    { type: 'commandRef', name: 'all:triage', argsText: '4711', rawText: '/all:triage 4711' },
  ]);
  t.end();
});
