/** Stack with the composition tool of Debian 12, which is not a plugin and knows less. */
import { writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import t from 'tap';
import { composeV1 } from '../deploy/tools.ts';
import { startOutside } from './outside.ts';
import { buildProduct } from './product.ts';
import { ownerOf, StackScene } from './stack-scene.ts';
import { images } from './variables.ts';

t.test('Compose 1.29 sets a stack up, makes its containers again and shows its status', async (t) => {
  await buildProduct();
  const outside = await startOutside(t);
  const place = ownerOf(t, outside);
  // Without the plugin of version 2.
  const env = {
    ...place.env,
    DOCKER_CONFIG: place.root,
    PATH: [dirname(await composeV1()), place.env['PATH']].join(delimiter),
  };
  const stack = new StackScene({ ...place, env });
  t.teardown(() => stack.remove());
  const keyFile = join(place.root, 'app.pem');
  writeFileSync(keyFile, outside.forge.app.privateKey, { mode: 0o600 });
  await stack.done(
    ...['init', '--yes', '--repo', 'acme/shop', '--clone-url', `acme/shop=${outside.url}/acme/shop.git`],
    ...['--image', images.product, '--gateway-image', images.gateway, '--provider', 'demo'],
    ...['--github-app-id', String(outside.forge.app.id), '--github-url', outside.url],
    ...['--github-app-private-key-file', keyFile],
  );
  const before = await stack.containers();
  t.same(Object.keys(before).sort(), ['agent', 'backend']);
  await stack.done('restart', '--service', 'agent', '--yes');
  const after = await stack.containers();
  t.not(after['agent'], before['agent']);
  t.equal(after['backend'], before['backend']);
  t.equal((await fetch(`${stack.backendUrl}/health`)).status, 200);
  const { checks } = JSON.parse((await stack.server('doctor', '--json')).stdout) as {
    checks: { id: string; status: string; saw: string }[];
  };
  t.same(
    checks.filter(({ status }) => status === 'fail'),
    [],
  );
  t.match(
    checks.find(({ id }) => id === 'runtime.compose'),
    { saw: /1\.29/ },
  );
});
