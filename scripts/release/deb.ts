/** Builds a Debian package without installation scripts. Does not need `dpkg-deb`, which only Debian has. */
import { lstatSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import type { TarSource } from 'modern-tar/fs';
import { sizeOf } from '../package/size.ts';
import { archiveTime, directoryEntry, sourcesBelow, textEntry, writeArchive } from './archive.ts';

interface DebOptions {
  readonly tree: string;
  readonly file: string;
  readonly version: string;
  /** Debian name of the architecture. */
  readonly architecture: string;
  readonly description: string;
  readonly homepage: string;
  readonly level?: number;
}

/** Node 22 needs glibc 2.28. The agent runs git, and runs commands in bubblewrap if it is installed. */
const control = ({ tree, version, architecture, description, homepage }: DebOptions): string => `Package: oratorio
Version: ${version.replace('-', '~')}
Architecture: ${architecture}
Maintainer: The Oratorio authors <oratorio-dev@users.noreply.github.com>
Installed-Size: ${Math.ceil(sizeOf(tree) / 1024)}
Depends: libc6 (>= 2.28), libstdc++6 (>= 8), libgcc-s1
Recommends: git, bubblewrap
Section: devel
Priority: optional
Homepage: ${homepage.replace(/#.*$/, '')}
Description: ${description.replace(/\.$/, '').split(':')[0]}
 ${description}
`;

const directories = [
  ...['usr', 'usr/bin', 'usr/lib', 'usr/lib/oratorio', 'usr/share', 'usr/share/doc', 'usr/share/doc/oratorio'],
  ...['usr/share/man', 'usr/share/man/man1', 'usr/share/bash-completion', 'usr/share/bash-completion/completions'],
  ...['usr/share/zsh', 'usr/share/zsh/vendor-completions', 'usr/share/fish', 'usr/share/fish/vendor_completions.d'],
];

/** Files of the tree that have different paths on Debian. */
function sharedFiles(tree: string): TarSource[] {
  const read = (path: string) => readFileSync(join(tree, path));
  return [
    textEntry('./usr/share/doc/oratorio/copyright', read('LICENSE')),
    textEntry('./usr/share/man/man1/oratorio.1.gz', gzipSync(read('share/man/man1/oratorio.1'))),
    textEntry('./usr/share/bash-completion/completions/oratorio', read('share/bash-completion/completions/oratorio')),
    textEntry('./usr/share/zsh/vendor-completions/_oratorio', read('share/zsh/site-functions/_oratorio')),
    textEntry(
      './usr/share/fish/vendor_completions.d/oratorio.fish',
      read('share/fish/vendor_completions.d/oratorio.fish'),
    ),
  ];
}

export async function writeDeb(options: DebOptions): Promise<void> {
  const { tree, file, level } = options;
  const parts = { control: `${file}.control`, data: `${file}.data`, command: `${file}.command` };
  symlinkSync('../lib/oratorio/bin/oratorio', parts.command);
  try {
    const command: TarSource = {
      type: 'file',
      source: parts.command,
      target: './usr/bin/oratorio',
      mode: 0o777,
      uid: 0,
      gid: 0,
      mtime: archiveTime(),
    };
    const ofTree = sourcesBelow(tree, './usr/lib/oratorio').filter(
      ({ target }) => !/oratorio\/(?:share|install\.sh)/.test(target),
    );
    const places = directories.map((path) => directoryEntry(`./${path}`));
    await writeArchive(parts.data, [...places, ...ofTree, command, ...sharedFiles(tree)], level);
    await writeArchive(parts.control, [textEntry('./control', control(options))], level);
    const members = [
      member('debian-binary', Buffer.from('2.0\n')),
      member('control.tar.gz', readFileSync(parts.control)),
      member('data.tar.gz', readFileSync(parts.data)),
    ];
    writeFileSync(file, Buffer.concat([Buffer.from('!<arch>\n'), ...members]));
  } finally {
    for (const part of Object.values(parts)) if (lstatSync(part, { throwIfNoEntry: false })) rmSync(part);
  }
}

/** Member of an `ar` archive: a header of 60 bytes, then the content, padded to an even length. */
function member(name: string, content: Buffer): Buffer {
  const seconds = String(archiveTime().getTime() / 1000);
  const heading = `${name.padEnd(16)}${seconds.padEnd(12)}${'0'.padEnd(6)}${'0'.padEnd(6)}${'100644'.padEnd(8)}${String(content.length).padEnd(10)}\`\n`;
  return Buffer.concat([Buffer.from(heading), content, Buffer.from(content.length % 2 === 0 ? '' : '\n')]);
}
