/** Creates the files of a release that contain the program with its Node: tarballs and Debian packages. */
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import packageJson from '../../package.json' with { type: 'json' };
import { sizeOf } from '../package/size.ts';
import { root } from '../toolchain.mjs';
import { sourcesBelow, writeArchive } from './archive.ts';
import { writeDeb } from './deb.ts';
import { type Platform, tarballName } from './platforms.ts';
import { writeTree } from './tree.ts';

/** Size limit of a tarball. */
export const packedLimitBytes = 60e6;
/** Size limit of an unpacked tarball. */
export const unpackedLimitBytes = 150e6;

export interface ArtefactOptions {
  readonly staged: string;
  readonly platform: Platform;
  readonly out: string;
  readonly version: string;
  readonly publicKey?: string | undefined;
  /** Compression level of gzip. */
  readonly level?: number;
  /** Changes the tree before it is packed. */
  readonly alter?: (tree: string) => void;
  readonly withDeb?: boolean;
}

export interface Artefact {
  readonly platform: Platform;
  readonly file: string;
  readonly deb: string | undefined;
  readonly sha256: string;
  readonly packedBytes: number;
  readonly unpackedBytes: number;
}

export const sha256Of = (file: string): string => createHash('sha256').update(readFileSync(file)).digest('hex');

/** @throws Error for a tarball beyond its limits */
export async function makeArtefacts(options: ArtefactOptions): Promise<Artefact> {
  const { staged, platform, out, version, publicKey, level = 9, alter, withDeb = true } = options;
  const tree = join(root, 'node_modules', '.cache', 'release', `tree-${platform.name}-${process.pid}`);
  try {
    mkdirSync(out, { recursive: true });
    await writeTree({ staged, platform, directory: tree, version, publicKey });
    alter?.(tree);
    const file = tarballName(version, platform);
    await writeArchive(join(out, file), sourcesBelow(tree, file.replace('.tar.gz', '')), level);
    const deb = withDeb && platform.debian !== null ? `oratorio_${version}_${platform.debian}.deb` : undefined;
    if (deb !== undefined && platform.debian !== null) {
      const { description, homepage } = packageJson;
      const words = { tree, file: join(out, deb), version, architecture: platform.debian, description, homepage };
      await writeDeb({ ...words, level });
    }
    const sizes = { packedBytes: statSync(join(out, file)).size, unpackedBytes: sizeOf(tree) };
    if (sizes.packedBytes > packedLimitBytes || sizes.unpackedBytes > unpackedLimitBytes)
      throw new Error(`${file} takes ${sizes.packedBytes} bytes, unpacked ${sizes.unpackedBytes}: too much`);
    return { platform, file, deb, sha256: sha256Of(join(out, file)), ...sizes };
  } finally {
    rmSync(tree, { recursive: true, force: true });
  }
}
