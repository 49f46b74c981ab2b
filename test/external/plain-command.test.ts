import fc from 'fast-check';
import t from 'tap';
import { plainCommand } from '../../src/external/plain-command.ts';
import { shellWord } from '../../src/lib/index.ts';

t.test('a command is the same with other quotes, and with a shell around it', async (t) => {
  const same = (...spellings: string[]) =>
    t.equal(new Set(spellings.map(plainCommand)).size, 1, JSON.stringify(spellings));
  same('ls -la', 'ls  -la ', `bash -c 'ls -la'`, `/bin/sh -lc "ls -la"`, `'ls' '-la'`);
  same(`echo 'a b'`, `echo "a b"`, `sh -c "echo 'a b'"`);
  same('make | tee log', `bash -lc 'make | tee log'`);
  fc.assert(
    fc.property(fc.array(fc.stringMatching(/^[a-z $|;*]{1,8}$/), { minLength: 1, maxLength: 4 }), (words) => {
      const command = ['run', ...words].map(shellWord).join(' ');
      return plainCommand(command) === plainCommand(`bash -c ${shellWord(command)}`) || command.includes("'");
    }),
    { seed: 11 },
  );
});

t.test('different commands stay different', async (t) => {
  for (const [one, other] of [
    ['ls rm x', 'ls\nrm x'],
    ['echo a', 'echo a; rm x'],
    ['echo $HOME', `echo '$HOME'`],
    [`sh -c 'ls' x`, 'ls'],
    ['A=1 ls', `'A=1' ls`],
    ['python -c ls', 'ls'],
    ['echo a b', `echo 'a b'`],
    ['rm *', `rm '*'`],
    ['./sh -c ls', 'ls'],
  ] as const)
    t.not(plainCommand(one), plainCommand(other), `${one} and ${other}`);
});
