/** Releases of this build for tests: packed with fast compression; later versions contain no Node. */
import { copyFileSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import packageJson from '../../package.json' with { type: 'json' };
import { stage } from '../../scripts/package/stage.ts';
import { type Artefact, makeArtefacts } from '../../scripts/release/artefacts.ts';
import { ownPlatform } from '../../scripts/release/platforms.ts';
import { root } from '../../scripts/toolchain.mjs';

export const { version } = packageJson;
const platform = ownPlatform();
const quotedVersion = new RegExp(`(["'\`])${version.replaceAll('.', '\\.')}\\1`, 'g');

/** Staged package. Releases are created in directories beside it. */
export class ReleaseFiles {
  readonly #place: string;

  constructor(place: string) {
    this.#place = place;
    stage(join(place, 'staged'));
  }

  /** Creates the release of this version, with its Node. */
  make(): Promise<Artefact & { readonly directory: string }> {
    return this.#make(version, { withDeb: false });
  }

  /** Creates a later version that runs under the Node of this test, also as a Debian package. @param alter changes the program */
  makeLater(
    later: string,
    alter: (program: string) => string = (program) => program,
  ): Promise<Artefact & { readonly directory: string }> {
    return this.#make(later, {
      alter(tree) {
        for (const file of ['package.json', ...globSync('dist/**/*.cjs', { cwd: tree })].map((name) =>
          join(tree, name),
        ))
          writeFileSync(file, readFileSync(file, 'utf8').replaceAll(quotedVersion, `"${later}"`));
        const program = join(tree, 'dist/cli/main.cjs');
        writeFileSync(program, alter(readFileSync(program, 'utf8')));
        writeFileSync(join(tree, 'node/bin/node'), `#!/bin/sh\nexec '${process.execPath}' "$@"\n`);
      },
    });
  }

  async #make(of: string, options: Partial<Parameters<typeof makeArtefacts>[0]>) {
    if (!platform) throw new Error('There is no tarball for this platform.');
    const directory = join(this.#place, `release-${of}`);
    mkdirSync(directory);
    const common = { staged: join(this.#place, 'staged'), platform, out: directory, level: 1 };
    const made = await makeArtefacts({ ...common, version: of, ...options });
    writeFileSync(join(directory, 'SHA256SUMS'), `${made.sha256}  ${made.file}\n`);
    copyFileSync(join(root, 'scripts/release/install.sh'), join(directory, 'install.sh'));
    return { ...made, directory };
  }
}
