import fc from 'fast-check';
import t from 'tap';
import { originOf } from '../../../src/deploy/doctor/origin.ts';
import { once } from '../../../src/deploy/once.ts';

const name = fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9_-]{0,20}$/);
const host = fc.stringMatching(/^[a-z0-9]{1,10}\.[a-z]{2,6}$/);
const password = fc.stringMatching(/^[A-Za-z0-9]{8,40}$/);

t.test('all spellings of the address of a repository are equal', async () => {
  fc.assert(
    fc.property(host, name, name, (at, owner, repo) => {
      const path = `${owner}/${repo}`;
      const ways = [
        `https://${at}/${path}`,
        `https://${at}/${path}.git/`,
        `ssh://git@${at}:22/${path}.git`,
        `git@${at}:${path}.git`,
        `${at}:${path}`,
      ];
      for (const url of ways) t.strictSame(originOf(url), { host: at, path, hasCredentials: false }, url);
    }),
    { numRuns: 50 },
  );
});

t.test('credentials in an address are reported without their values', async () => {
  fc.assert(
    fc.property(host, password, (at, secret) => {
      for (const url of [
        `https://${secret}@${at}/a/b`,
        `https://user:${secret}@${at}/a/b`,
        `ssh://git:${secret}@${at}/a/b`,
      ]) {
        const found = originOf(url);
        t.equal(found?.hasCredentials, true);
        t.notOk(JSON.stringify(found).includes(secret));
      }
    }),
    { numRuns: 50 },
  );
});

t.test('a path, a file and a transport that runs a program have no host', async (t) => {
  for (const url of ['', '/srv/git/x.git', '../x', 'file:///srv/x.git', 'ext::sh -c evil'])
    t.equal(originOf(url), null, url);
});

t.test('a fact is read once, also after a failure', async (t) => {
  let asked = 0;
  const question = once(() => {
    asked += 1;
    throw new Error('no');
  });
  t.throws(question, { message: 'no' });
  t.throws(question, { message: 'no' });
  t.equal(asked, 1);
});
