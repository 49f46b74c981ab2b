import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';

interface Bundled {
  readonly name: string;
  readonly version: string;
  readonly license: string;
  readonly text: string;
}

const licenceFile = /^(licen[cs]e|copying|notice)(\.|-|$)/i;
const packagePart = /^(.*[\\/]node_modules[\\/](?:@[^\\/]+[\\/])?[^\\/]+)[\\/]/;

/** Directories of the packages whose code is in the bundles: their source maps name every module. */
function bundledPackages(mapFiles: readonly string[]): readonly string[] {
  const found = new Set<string>();
  for (const file of mapFiles) {
    const { sources } = JSON.parse(readFileSync(file, 'utf8')) as { readonly sources: readonly string[] };
    for (const source of sources) {
      const [, directory] = packagePart.exec(resolve(dirname(file), source)) ?? [];
      if (directory !== undefined) found.add(directory);
    }
  }
  return [...found].sort();
}

function describe(directory: string): Bundled {
  const manifest = JSON.parse(readFileSync(join(directory, 'package.json'), 'utf8')) as Partial<Bundled>;
  const { name = directory, version = '', license = '' } = manifest;
  const files = readdirSync(directory).filter((file) => licenceFile.test(file));
  const texts = files.map((file) => readFileSync(join(directory, file), 'utf8').trim());
  return { name, version, license, text: texts.join('\n\n') };
}

/**
 * Names and licences of all software in the bundles.
 *
 * @param others directories of packages whose files are copied, not bundled
 * @throws Error for a package without a licence
 */
export function thirdPartyNotices(mapFiles: readonly string[], others: readonly string[]): string {
  const directories = [...new Set([...bundledPackages(mapFiles), ...others])];
  const packages = directories.filter((directory) => existsSync(join(directory, 'package.json'))).map(describe);
  const [unlicensed] = packages.filter(({ license, text }) => license === '' && text === '');
  if (unlicensed) throw new Error(`${unlicensed.name} is in the bundles and has no licence`);
  const sections = packages
    .sort((one, other) => (one.name < other.name ? -1 : 1))
    .map(({ name, version, license, text }) => `## ${name} ${version}\n\nLicence: ${license}\n\n${fenced(text)}`);
  return `# Third-party notices\n\nThis package contains the software below.\n\n${sections.join('\n')}`;
}

const fenced = (text: string): string => (text === '' ? '' : `~~~~text\n${text.replaceAll('~~~~', '~~~')}\n~~~~\n`);
