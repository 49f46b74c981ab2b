import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { root } from '../../../scripts/toolchain.mjs';
import { preparedDockerfile } from '../../../src/deploy/engine/build-image.ts';

t.test('the Dockerfile of a prepared context copies the results of the stage `build` from the context', (t) => {
  const prepared = preparedDockerfile(readFileSync(join(root, 'Dockerfile'), 'utf8'));
  t.notMatch(prepared, /AS build|--from=build|build\.sh/);
  const [base, , system, , ...image] = prepared
    .split('\n')
    .filter((line) => /^(?:ARG B|FROM|COPY|ENTRYPOINT)/.test(line));
  t.match(base, /^ARG BASE_IMAGE=/);
  t.match(system, /^COPY .*system\.sh/);
  t.strictSame(image.slice(0, 3), ['COPY --from=system / /', 'COPY /node/ /', 'COPY /product/ /']);
  t.match(image[3], /^ENTRYPOINT/);
  t.end();
});

t.test('a Dockerfile without that stage is refused', (t) => {
  t.throws(() => preparedDockerfile('FROM scratch\nCOPY . /\n'), { code: 'imageFailed' });
  t.end();
});
