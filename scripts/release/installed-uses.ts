/** Installs the files of a release like a user, uses the program, and uninstalls it. */
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { type CleanUser, firstDay, type Ran } from './clean-user.ts';

/** Result of an installation: the files that remain after it was uninstalled. */
export interface Use {
  readonly ran: Ran;
  readonly left: readonly string[];
}

/** Runs `install.sh` twice, from a directory with the tarball and its checksum. */
export async function useInstaller(user: CleanUser, release: string): Promise<Use> {
  const ran = await user.run(`
    sh ${release}/install.sh --from ${release}
    ${firstDay}
    sh ${release}/install.sh --from ${release}
    sh "$HOME/.local/share/oratorio/current/install.sh" --uninstall`);
  return { ran, left: user.traces() };
}

/** Runs `dpkg` with a separate root directory, so the system of this machine does not change. */
export async function useDebianPackage(user: CleanUser, file: string): Promise<Use> {
  const system = join(user.root, 'system');
  for (const name of ['info', 'updates', 'triggers'])
    mkdirSync(join(system, 'var/lib/dpkg', name), { recursive: true });
  writeFileSync(join(system, 'var/lib/dpkg/status'), '');
  const before = filesOf(system);
  const dpkg = `dpkg --root=${system} --log=/dev/null --force-depends`;
  // Only root can set the owner of the files.
  const [install, remove] =
    process.getuid?.() === 0
      ? [`${dpkg} --install ${file}`, `${dpkg} --purge oratorio`]
      : [`dpkg-deb --extract ${file} ${system}`, `rm -r ${system}/usr`];
  const ran = await user.run(
    `${install}
    test -s ${system}/usr/share/man/man1/oratorio.1.gz
    ${firstDay}
    ${remove}`,
    { PATH: `${join(system, 'usr/bin')}:${user.env['PATH']}` },
  );
  return { ran, left: filesOf(system).filter((path) => !before.includes(path)) };
}

const filesOf = (directory: string): readonly string[] =>
  readdirSync(directory, { withFileTypes: true, recursive: true })
    .map((entry) => relative(directory, join(entry.parentPath, entry.name)))
    .filter((path) => !path.startsWith('var/lib/dpkg/') || path.includes('oratorio'))
    .sort();
