import fc from 'fast-check';
import t from 'tap';
import {
  checkRepository,
  isSameRepository,
  type RepositoryRefusal,
  repositoryOf,
  repositoryRefusals,
} from '../../../src/deploy/files/index.ts';
import { isFullName } from '../../../src/review/settings/repositories.ts';

t.test('reads github:owner/name', (t) => {
  t.strictSame(repositoryOf('github:Acme-Corp/My.Repo_1'), {
    owner: 'Acme-Corp',
    name: 'My.Repo_1',
    fullName: 'Acme-Corp/My.Repo_1',
    key: 'acme-corp/my.repo_1',
    directory: 'Acme-Corp__My.Repo_1',
    workspacePath: '/workspace/Acme-Corp__My.Repo_1',
  });
  t.ok(isSameRepository(repositoryOf('GitHub:ACME/Api'), repositoryOf('github:acme/api')), 'GitHub does not know case');
  t.end();
});

t.test('says why a text names no repository', (t) => {
  const cases: readonly (readonly [text: string, reason: RepositoryRefusal])[] = [
    ['', 'forge'],
    ['acme/api', 'forge'],
    ['gitlab:acme/api', 'forge'],
    ['https://github.com/acme/api', 'forge'],
    ['git@github.com:acme/api.git', 'forge'],
    ['github:', 'shape'],
    ['github:acme', 'shape'],
    ['github:acme/', 'shape'],
    ['github:/api', 'shape'],
    ['github:acme/api/pulls', 'shape'],
    ['github:github.com/acme/api', 'shape'],
    ['github:acme/api\n/', 'shape'],
    ['github:-acme/api', 'owner'],
    ['github:acme-/api', 'owner'],
    ['github:ac--me/api', 'owner'],
    ['github:ac_me/api', 'owner'],
    ['github: acme/api', 'owner'],
    ['github:../api', 'owner'],
    [`github:${'a'.repeat(40)}/api`, 'owner'],
    ['github:acme/..', 'name'],
    ['github:acme/.', 'name'],
    ['github:acme/a b', 'name'],
    ['github:acme/api\n', 'name'],
    ['github:acme/äpi', 'name'],
    [`github:acme/${'a'.repeat(101)}`, 'name'],
    ['github:acme/api.git', 'gitSuffix'],
    ['github:acme/api.GIT', 'gitSuffix'],
  ];
  for (const [text, refused] of cases) {
    t.strictSame(checkRepository(text), { refused }, JSON.stringify(text));
    const message = new RegExp(`${repositoryRefusals[refused].slice(0, 20)}`);
    t.throws(() => repositoryOf(text), { code: 'invalidInput', message });
  }
  t.end();
});

t.test('an address with a log-in is not repeated', (t) => {
  t.throws(() => repositoryOf('https://me:hunter2@github.com/acme/api'), { message: /^This does not begin/ });
  t.end();
});

t.test('no two repositories share a checkout, which is one directory of a plain name', (t) => {
  const owner = fc.stringMatching(/^[a-zA-Z0-9]{1,3}(-[a-z0-9]{1,3})?$/);
  const name = fc.stringMatching(/^[a-z_.-]{1,6}$/);
  const repository = fc
    .tuple(owner, name)
    .map(([owner, name]) => checkRepository(`github:${owner}/${name}`))
    .filter((checked) => 'repository' in checked)
    .map(({ repository }) => repository);
  fc.assert(
    fc.property(repository, repository, (one, other) => {
      t.equal(one.directory.toLowerCase() === other.directory.toLowerCase(), isSameRepository(one, other));
      t.match(one.directory, /^[a-z0-9-]+__[a-z0-9._-]+$/i);
      t.ok(isFullName(one.fullName), 'the backend takes it too');
    }),
    { numRuns: 300 },
  );
  t.end();
});
