import fc from 'fast-check';
import t from 'tap';
import { childEnvironment } from '../../src/supervise/index.ts';

t.test('a child gets the default, the listed and the added variables', async (t) => {
  const source = {
    PATH: '/bin',
    LC_ALL: 'C',
    XDG_RUNTIME_DIR: '/run',
    https_proxy: 'http://proxy',
    OPENAI_API_KEY: 'secret',
    MINE: 'passed',
    ORATORIO_HOME: '/home',
    ORATORIO_TOKEN: 'secret',
    UNSET: undefined,
  };
  t.strictSame(
    childEnvironment(source, { pass: ['MINE', 'ORATORIO_TOKEN', 'UNSET'], add: { ORATORIO_HOME: '/other' } }),
    {
      PATH: '/bin',
      LC_ALL: 'C',
      XDG_RUNTIME_DIR: '/run',
      https_proxy: 'http://proxy',
      MINE: 'passed',
      ORATORIO_HOME: '/other',
    },
  );
  t.strictSame(childEnvironment({ OPENAI_API_KEY: 'secret' }), {});
});

t.test('a child finds the tool chains of its user, without their tokens', async (t) => {
  const kept = {
    VIRTUAL_ENV: '/venv',
    JAVA_HOME: '/java',
    CARGO_HOME: '/cargo',
    CONDA_PREFIX: '/conda',
    NVM_DIR: '/nvm',
  };
  const dropped = { CONDA_TOKEN: 'secret', CONDA_API_KEY: 'secret', BUNDLE_RUBYGEMS__PKG__GITHUB__COM: 'me:secret' };
  t.strictSame(childEnvironment({ ...kept, ...dropped }), kept);
});

t.test('a child trusts the certificates of its user, and gets no options of Node', async (t) => {
  const kept = { NODE_EXTRA_CA_CERTS: '/ca.pem', SSL_CERT_FILE: '/ca.pem', SSL_CERT_DIR: '/certs' };
  t.strictSame(childEnvironment({ ...kept, NODE_OPTIONS: '--require /tmp/x.js' }), kept);
});

t.test('no variable outside of the lists is passed from any environment', async () => {
  const word = fc.constantFrom('ORATORIO', 'API', 'KEY', 'TOKEN', 'SECRET', 'PATH', 'HOME', 'LC', 'AWS', 'x');
  const name = fc.oneof(
    // Chance may spell one of the list, such as CI.
    fc.string().filter((text) => !/^[A-Z_]+$/i.test(text)),
    fc.array(word, { minLength: 1, maxLength: 3 }).map((words) => words.join('_')),
  );
  fc.assert(
    fc.property(fc.dictionary(name, fc.string()), fc.array(name, { maxLength: 3 }), (source, pass) => {
      const kept = Object.keys(childEnvironment(source, { pass }));
      const known = /^(PATH|HOME|LC_.*|XDG_.*|[A-Z_]*(LANG|TZ|USER|TERM|SHELL|TMPDIR)[A-Z_]*)$/;
      return kept.every((key) => !/^oratorio_/i.test(key) && (pass.includes(key) || known.test(key)));
    }),
    { numRuns: 500 },
  );
});
