/** Decisions about commands: plain, compound and hostile ones. */
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import * as v from 'valibot';
import { createBuiltinTools, placeRules, RuleBook } from '../../../src/agent/index.ts';
import { Config, type PermissionRule } from '../../../src/config/index.ts';
import { temporaryWorkspace } from '../tools/run-tool.ts';

const workspacePath = temporaryWorkspace(t);
const home = temporaryWorkspace(t);
const outside = temporaryWorkspace(t);
mkdirSync(join(workspacePath, 'src', 'deep'), { recursive: true });
mkdirSync(join(workspacePath, '.oratorio'));
for (const file of ['a.txt', 'src/b.ts', 'src/deep/c.ts', '.oratorio/config.json', 'secret.pem', 'with blank.txt']) {
  writeFileSync(join(workspacePath, file), '1\n');
}
writeFileSync(join(outside, 'key'), 'k');
symlinkSync(join(outside, 'key'), join(workspacePath, 'link'));
symlinkSync(outside, join(workspacePath, 'away'));
symlinkSync(join(outside, 'key'), join(workspacePath, '-link'));

const rules: readonly PermissionRule[] = [
  { Tool: 'Exec', Prefix: 'npm run', Decision: 'allow' },
  { Tool: 'Exec', Prefix: ['npm', 'test'], Decision: 'allow' },
  { Tool: 'exec', Prefix: 'cargo test', Decision: 'allow' },
  { Tool: 'Exec', Pattern: 'make test-*', Decision: 'allow' },
  { Tool: 'Exec', Prefix: 'npm run deploy', Decision: 'ask' },
  { Tool: 'Exec', Prefix: 'git push', Decision: 'deny' },
  { Tool: 'Exec', Pattern: 'rm -rf /*', Decision: 'deny' },
];

function bookOf(configured: readonly PermissionRule[], over: { blockedPaths?: readonly string[]; path?: string } = {}) {
  const { blockedPaths = ['secret.pem'], path = '/usr/local/bin:/usr/bin:/bin' } = over;
  return new RuleBook({
    configured,
    stateDirectory: join(home, 'state'),
    places: placeRules({ blockedPaths, home, environment: { PATH: path } }),
  });
}

const [exec] = createBuiltinTools({
  tools: v.parse(Config, {}).Tools,
  blockedPaths: [],
  passEnvironment: [],
  secrets: [],
  environment: process.env,
  home,
}).filter(({ name }) => name === 'Exec');
const book = bookOf(rules);

async function decide(command: string, by = book, workingDir?: string): Promise<string> {
  const parsed = exec?.parse({ command, ...(workingDir !== undefined && { workingDir }) });
  if (!exec || !parsed?.ok) throw new Error(`no command: ${command}`);
  return (await by.judge(exec, parsed.args, { workspacePath })).decision ?? 'silent';
}

/** One command a line. */
const lines = (text: string): readonly string[] =>
  text
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean);

const reading = lines(`
  ls
  ls -la
  ls -la src
  ls src/deep a.txt
  cat a.txt
  cat -n src/b.ts
  cat "with blank.txt"
  cat 'with blank.txt'
  cat ./src/../a.txt
  cat ${workspacePath}/a.txt
  head -n 5 a.txt
  head -5 a.txt
  tail a.txt
  tail -n +3 a.txt
  wc -l a.txt
  wc -l src/b.ts src/deep/c.ts
  nl a.txt
  rev a.txt
  cut -d : -f 1 a.txt
  paste a.txt src/b.ts
  stat a.txt
  stat -c %s a.txt
  stat --format=%n a.txt
  ls -R .
  ls -1At --color=never
  ls --all --recursive
  cat -A --number a.txt
  head -n5 --quiet a.txt
  head --lines=5 a.txt
  cut -d: -f1,3 a.txt
  cut --delimiter=: --fields=1 a.txt
  nl -ba a.txt
  paste -sd, a.txt
  sort a.txt
  sort -n -r a.txt
  uniq a.txt
  uniq -c a.txt
  echo hello
  echo "hello world"
  echo 'a b' c
  pwd
  true
  false
  whoami
  id
  id -u
  uname -a
  seq 1 10
  expr 1 + 2
  which node
  tr a b
  grep foo a.txt
  grep -n foo a.txt src/b.ts
  grep -i -c foo a.txt
  grep "a b" a.txt
  grep -A3 -nm1 foo a.txt
  grep --color=never --context=2 foo a.txt
  grep -- -x a.txt
  cat -- a.txt
  tail -c +3 a.txt
  tail -n+3 a.txt
  sort -k2,2n -t: a.txt
  sort -t , -nk1 a.txt
  sort --numeric-sort --key=2 a.txt
  wc --lines a.txt
  find . -name x.ts
  find src -type f
  find src -maxdepth 1 -type d -print
  sed -n 1,5p a.txt
  sed -n 3p a.txt
  sed -n '2,9p' src/b.ts
  cd src
  cd src && ls
  cd src/deep && cat c.ts ${workspacePath}/src/deep/c.ts
  ls | head -5
  cat a.txt | grep x | wc -l
  cat a.txt && echo done
  cat a.txt || echo missing
  cat a.txt; ls
  ls 2>/dev/null
  ls 2>&1
  ls src >/dev/null 2>&1
  cat a.txt & ls
  cat missing.txt
  # a comment
  ls # with a comment
`).filter((line) => !line.startsWith('#'));

const beyond = lines(`
  cat /etc/passwd
  cat ../secret
  cat ~/.ssh/id_rsa
  cat link
  cat away/key
  cat src/../../x
  cat .oratorio/config.json
  cat ./.oratorio/../.oratorio/config.json
  cat secret.pem
  cat src/../secret.pem
  head -c 10 /proc/self/environ
  ls /
  ls ..
  ls away
  stat /etc/shadow
  ls -L .
  ls -RL .
  ls -H .
  ls -lRL src
  ls --dereference
  ls --deref -R
  ls --dereference-command-line .
  ls --dereference-command-line-symlink-to-dir .
  stat -L a.txt
  stat --dereference a.txt
  stat --deref a.txt
  cat --unknown a.txt
  cat --f=a.txt
  head --unknown a.txt
  cut --out=x a.txt
  nl --files0-from=a.txt
  paste --files0-from=a.txt
  rev --unknown a.txt
  cd -P && cat .profile
  cd -- && cat .profile
  sort /etc/passwd
  grep root /etc/passwd
  grep -e x /etc/passwd
  grep -ex /etc/passwd
  grep -fa.txt /etc/passwd
  grep -f a.txt src/b.ts
  grep --file=/etc/passwd x
  grep --regexp=x /etc/shadow
  grep -r x .
  grep -R x .
  grep -rn x
  grep --recursive x
  grep -d recurse x .
  rg x
  rg x src
  find / -name x
  find .. -name x
  find . -delete
  find . -exec rm x ;
  find . -execdir rm x +
  find . -ok rm x
  find . -fprint out
  find . -fls out
  find -L . -name x
  sed -n 1p /etc/passwd
  sed -n 1,5p -i a.txt
  sed -i s/a/b/ a.txt
  sed -n e a.txt
  sed s/a/b/ a.txt
  sed -n 1w\\out a.txt
  sort -o a.txt a.txt
  sort --output=a.txt a.txt
  sort --compress-program=x a.txt
  sort -oa.txt a.txt
  sort -T /etc a.txt
  uniq a.txt out.txt
  tail -f a.txt
  tail --follow=name a.txt
  tail -F a.txt
  cd ..
  cd -
  cd
  cd src deep
  cd /
  cd away && cat key
  cd src | cat ../../secret
  cd missing || cat ../secret
  cd src & cat ../../secret
  cd src; cat ../../secret
  cd src && cat ../a.txt
  wc --files0-from=/etc/passwd
  wc --fi=a.txt
  sort --fil=a.txt
  sort --files0-from=a.txt
  sort --t=src a.txt
  sort --out=a.txt a.txt
  sort -S1 a.txt
  grep --rec x .
  grep --der x .
  grep --dir=recurse x .
  grep --reg x /etc/shadow
  grep --perl-regexp x a.txt
  grep -nP x a.txt
  tail --fol a.txt
  tail --pi=1 a.txt
  cat -- -link
  head -n 1 -- -link
  grep x -- -link
  uniq -- a.txt -out
  sed -n 1p -- -link
  git status
  git log
  git diff
  git -C /etc status
  npm install
  npm
  npm testing
  cargo build
  make test
  make
  node -e x
  python3 x.py
  curl http://example.com
  sh -c ls
  bash -c 'ls'
  env ls
  command ls
  exec ls
  nohup ls
  xargs ls
  time ls
  sudo ls
  eval ls
  . ./x.sh
  source x.sh
  tee out
  cat a.txt | tee out
  cat a.txt > out.txt
  cat a.txt >> out.txt
  cat < /etc/passwd
  ls >src/out
  ls &>out
  ls >| out
  ls 2>err.txt
  xls
  /bin/ls
  ./ls
  src/ls
  LS
  alias ls=rm
  function ls { rm x; }
  ls() { rm x; }
  if true; then ls; fi
  while true; do ls; done
  for i in a; do ls; done
  case a in a) ls;; esac
  ( ls )
  { ls; }
  ! ls
  [ -f a.txt ]
  [[ -f a.txt ]]
  test -f a.txt
  export A=1
  declare A=1
  unset PATH
  set -e
  trap ls EXIT
  kill 1
  coproc ls
  select x in a; do ls; done
`);

/** Scripts that are more than plain commands. `@` is a command that is allowed alone. */
const hostile: readonly string[] = [
  'PATH=. @',
  'LD_PRELOAD=./x.so @',
  'BASH_ENV=x @',
  'A=1 @',
  '@ $(rm x)',
  '@ `rm x`',
  '@ "$(rm x)"',
  '@ "`rm x`"',
  '@ $x',
  '@ "$x"',
  '@ ${x}',
  '@ $((1))',
  '@ <(rm x)',
  '@ >(rm x)',
  '@ > out',
  '@ >> out',
  '@ < in',
  '@ <<E\nx\nE',
  "@ <<'E'\nx\nE",
  '@ <<< x',
  '@ *',
  '@ ?',
  '@ [a]',
  '@ {a,b}',
  '@ ~',
  '@ a~',
  '@ x=~',
  '@ \\x',
  '@ a\\ b',
  '@ \\\nrm x',
  "@ $'a\\x20b'",
  '@ $"a"',
  '@\u00a0x',
  '@\u2003x',
  '@ \u200bx',
  '@\rrm x',
  '@\0rm x',
  '@\u0085rm x',
  '( @ )',
  '{ @; }',
  '! @',
  'time @',
  'if @; then @; fi',
  'while @; do @; done',
  'f() { @; }; f',
  'x() @',
  'eval "@"',
  'sh -c "@"',
  'env @',
  'xargs @',
  'sudo @',
  'nohup @',
  'exec @',
  'command @',
  '@ && rm x',
  '@ || rm x',
  '@; rm x',
  '@ | sh',
  '@ | xargs rm',
  '@ & rm x',
  '@\nrm x',
  'rm x\n@',
  '@ "unclosed',
  "@ 'unclosed",
  '@ )',
  '@ &&',
  '@ |',
  '@ ;;',
  'ｎpm run build; @',
  'nрm run build; @',
  '"npm run" build; @',
];
const allowed = ['npm run build', 'npm test', 'npm test -- --watch=false', 'cargo test --all', 'make test-unit'];

const denied = lines(`
  git push
  git push --force origin main
  ls; git push
  ls && git push
  true || git push
  git push | cat
  ( git push )
  { git push; }
  if true; then git push; fi
  while true; do git push; done
  for i in a b; do git push; done
  echo $(git push)
  echo \`git push\`
  A=1 git push
  git push > out
  git push &
  ! git push
  sudo git push
  env A=1 git push
  nohup git push
  timeout 5 git push
  xargs git push
  time git push
  command git push
  exec git push
  /usr/bin/git push
  ./git push
  sh -c 'git push'
  bash -c "git push"
  bash -c "ls; git push"
  eval "git push"
  bash -c "bash -c 'git push'"
  'git' 'push'
  "git" push
  g'i't push
  git   push
  git push # please
  npm run build && git push
  case a in a) git push;; esac
  f() { git push; }; f
  cat <(git push)
  git push "unclosed
  rm -rf /
  rm -rf /etc
  sudo rm -rf /etc
  echo git push | sh
  printf '%s' "git push" | sudo bash
  bash -s push < git push
  eval git push
`).concat(['bash <<E\ngit push\nE', "sh -s <<'E'\nls\ngit push\nE", 'cat <<E | bash\ngit  push\nE']);

let count = 0;
const expectAll = async (tt: Test, commands: readonly string[], expected: string | RegExp) => {
  for (const command of commands) {
    count += 1;
    tt.match(await decide(command), expected, JSON.stringify(command));
  }
};

t.test('commands that only read in the workspace are allowed', (tt) => expectAll(tt, reading, 'allow'));
t.test('commands that reach further are not', (tt) => expectAll(tt, beyond, 'silent'));
t.test('commands of a rule are allowed, also joined with reading ones', (tt) =>
  expectAll(
    tt,
    allowed.flatMap((each) => [
      each,
      `${each} && ls`,
      `cd src && ${each}`,
      `${each} 2>&1 | tail -20`,
      `${each}; echo x`,
      `${each}\nls`,
    ]),
    'allow',
  ),
);
t.test('an allowed command with any addition that changes it is not allowed', (tt) =>
  expectAll(
    tt,
    hostile
      .flatMap((template) => allowed.slice(0, 4).map((each) => template.replaceAll('@', () => each)))
      .filter((each) => !each.includes('\0')),
    'silent',
  ),
);
t.test('a denied command is denied wherever it stands', (tt) => expectAll(tt, denied, 'deny'));
t.test('of several rules the strictest holds', async (tt) => {
  await expectAll(
    tt,
    ['npm run deploy', 'npm run deploy -- --now', 'npm test && npm run deploy', 'ls; npm run deploy'],
    'ask',
  );
  await expectAll(tt, ['npm run deploy && git push', 'git push; npm run deploy'], 'deny');
});
t.test('more than 500 commands were decided', (tt) => {
  tt.ok(count >= 500, `${count}`);
  tt.end();
});

t.test('regression: H49 a program of the workspace does not count as a reading one', async (tt) => {
  const bin = join(workspacePath, 'bin');
  mkdirSync(bin);
  writeFileSync(join(bin, 'cat'), '#!/bin/sh\ntouch stolen\n');
  chmodSync(join(bin, 'cat'), 0o755);
  tt.equal(await decide('cat a.txt', bookOf([], { path: `${bin}:/usr/bin:/bin` })), 'silent');
  tt.equal(await decide('cat a.txt', bookOf([], { path: '.:/usr/bin:/bin' })), 'silent');
  tt.equal(await decide('echo x', bookOf([], { path: `${bin}:/usr/bin:/bin` })), 'allow', 'built into the shell');
});

t.test('rg is a reading command where no path is blocked', async (tt) => {
  const rg = join(outside, 'rg');
  writeFileSync(rg, '#!/bin/sh\n');
  chmodSync(rg, 0o755);
  const open = bookOf([], { blockedPaths: [], path: `${outside}:/usr/bin:/bin` });
  for (const command of ['rg foo', 'rg -n foo src', 'rg -i "a b" src'])
    tt.equal(await decide(command, open), 'allow', command);
  for (const option of [
    '--pre=x',
    '--hidden',
    '-.',
    '-uu',
    '--no-ignore',
    '-z',
    '-L',
    '--follow',
    '-e x',
    '-f x',
    '--files',
    "'-g*'",
    "--glob='*'",
    "--iglob='.oratorio/*'",
    '--config=x',
  ]) {
    tt.equal(await decide(`rg ${option} foo src`, open), 'silent', option);
  }
  tt.equal(await decide('rg foo', bookOf([], { path: `${outside}:/usr/bin:/bin` })), 'silent');
});

t.test('operands are judged from the working directory of the call', async (tt) => {
  tt.equal(await decide('cat ../a.txt', book, 'src'), 'allow');
  tt.equal(await decide('cat ../../x', book, 'src'), 'silent');
});

t.test(
  'a script that is too long, or has too many commands, is never allowed, and denied commands in it are found',
  async (tt) => {
    tt.equal(await decide(`npm test ${'x'.repeat(30_000)}`), 'silent');
    tt.equal(await decide(Array.from({ length: 300 }, () => 'ls').join(';')), 'silent');
    tt.equal(await decide(`${'ls;'.repeat(300)} git push`), 'deny');
    tt.equal(await decide(`echo ${'x'.repeat(30_000)}; git push`), 'deny');
  },
);

t.test('patterns are compared in linear time', async (tt) => {
  const catastrophic = bookOf([{ Tool: 'Exec', Pattern: `${'*a'.repeat(200)}b`, Decision: 'allow' }]);
  tt.equal(await decide(`npm ${'a'.repeat(10_000)}`, catastrophic), 'silent');
});
