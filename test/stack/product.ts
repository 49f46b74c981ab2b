/** The image of the product, built as people without a registry build it. */
import { root } from '../../scripts/toolchain.mjs';
import { must } from '../deploy/must.ts';
import { images } from './variables.ts';

const buildMs = 600_000;

/** Builds it on the base of the tests with `scripts/image.ts`. */
export async function buildProduct(tag: string = images.product, { isFresh = false } = {}): Promise<void> {
  const words = ['build', '--base', images.base, '--tag', tag, ...(isFresh ? ['--fresh'] : [])];
  await must(process.execPath, ['--disable-warning=ExperimentalWarning', 'scripts/image.ts', ...words], {
    timeoutMs: buildMs,
    cwd: root,
  });
}

export interface ImageFacts {
  /** Bytes of all layers. */
  readonly size: number;
  readonly layers: readonly string[];
  readonly user: string;
  readonly labels: Readonly<Record<string, string>>;
}

export async function inspectImage(image: string): Promise<ImageFacts> {
  const [found] = JSON.parse(await must('docker', ['image', 'inspect', image], { timeoutMs: 60_000 }));
  return {
    size: found.Size,
    layers: found.RootFS.Layers,
    user: found.Config.User,
    labels: found.Config.Labels,
  };
}
