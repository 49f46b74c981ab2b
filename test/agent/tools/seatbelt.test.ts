/** The profile of the sandbox on macOS, as a text: no Mac runs these tests. */
import fc from 'fast-check';
import t from 'tap';
import { seatbeltProfile } from '../../../src/agent/tools/exec/seatbelt.ts';

const places = { workspacePath: '/Users/a/site', network: 'deny' as const, hidden: [{ path: '/Users/a/.oratorio' }] };

t.test('the workspace and temporary files can be written, hooks of git and hidden places cannot', async (t) => {
  const lines = seatbeltProfile(places).split('\n');
  t.match(lines[3], /^\(allow file-write\* \(subpath "\/Users\/a\/site"\).*\(subpath "\/private\/tmp"\)/);
  t.match(lines[4], /^\(deny file-write\* \(subpath "\/Users\/a\/site\/\.git\/hooks"\).*"\/Users\/a\/\.oratorio"/);
  t.match(lines[5], /^\(deny file-read\* .*\.ssh"\).*\(subpath "\/Users\/a\/\.oratorio"\)/);
  t.ok(lines.indexOf('(deny file-write*)') < lines.indexOf(lines[3] ?? ''), 'later rules win');
});

t.test('the network is closed but for this machine, or open', async (t) => {
  t.match(seatbeltProfile(places), /\(deny network\*\)\n\(allow network\* \(local ip "localhost:\*"\)/);
  t.notMatch(seatbeltProfile({ ...places, network: 'allow' }), /network/);
});

t.test('what may be read in a hidden place is opened after it', async (t) => {
  const lines = seatbeltProfile({ ...places, readable: '/Users/a/.oratorio/outputs' }).split('\n');
  const at = (words: string) => lines.findIndex((line) => line.startsWith(words));
  t.ok(at('(allow file-read* (subpath "/Users/a/.oratorio/outputs"))') > at('(deny file-read*'));
});

t.test('no path ends its own text (property)', async (t) => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), (name) => {
      const workspacePath = `/w/${name}`;
      if (/\p{Cc}/u.test(name)) {
        t.throws(() => seatbeltProfile({ ...places, workspacePath }), RangeError);
        return;
      }
      const profile = seatbeltProfile({ ...places, workspacePath });
      // Without its texts a profile has only words, stars, blanks and balanced brackets.
      const bare = profile.replace(/"(?:\\.|[^"\\])*"/g, '""');
      t.match(bare, /^[\w\s()*"-]+$/);
      t.equal(bare.split('(').length, bare.split(')').length);
    }),
    { numRuns: 300 },
  );
});
