/** Stages the files of the inspector package in a directory. */
import { copyFileSync, cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import packageJson from '../../package.json' with { type: 'json' };
import { root } from '../toolchain.mjs';
import { thirdPartyNotices } from './notices.ts';
import { shortened } from './stage.ts';

const at = (path: string): string => join(root, path);

/** Lowest version of XState that the package supports: earlier ones do not report the transitions of a step. */
const oldestXstate = '^5.9.0';

function manifest(): unknown {
  const { version, license, homepage, bugs, repository, type, engines } = packageJson;
  return {
    name: '@oratorio/inspector',
    version,
    description: 'Statecharts, time travel and simulation for the running actors of any XState v5 program, offline.',
    ...{ license, homepage, bugs, repository, type, engines },
    sideEffects: false,
    exports: {
      '.': {
        browser: { types: './browser.d.ts', default: './browser.js' },
        types: './node.d.ts',
        default: './node.js',
      },
      './page/*': './page/*',
      './package.json': './package.json',
    },
    peerDependencies: { xstate: oldestXstate },
  };
}

/** Type declarations of an entry point. They depend only on its options. */
const declarations = (options: string): string =>
  `${readFileSync(at('src/inspector/options.ts'), 'utf8')}
/** Records every actor that is created with \`inspect\`, for the page of this package. */
export declare function createInspector(options?: ${options}): Inspector;
`;

/** Replaces the content of `directory` with the files of the package. Needs a built `dist/`. */
export function stageInspector(directory: string): void {
  rmSync(directory, { recursive: true, force: true });
  mkdirSync(directory, { recursive: true });
  for (const entry of ['node', 'browser']) {
    writeFileSync(join(directory, `${entry}.js`), shortened(at(`dist/inspector/${entry}.js`)));
  }
  writeFileSync(join(directory, 'node.d.ts'), declarations('NodeInspectorOptions'));
  writeFileSync(join(directory, 'browser.d.ts'), declarations('BrowserInspectorOptions'));
  cpSync(at('dist/inspector/page'), join(directory, 'page'), { recursive: true });
  copyFileSync(at('LICENSE'), join(directory, 'LICENSE'));
  copyFileSync(at('docs/inspector-package.md'), join(directory, 'README.md'));
  const maps = ['node', 'browser'].map((entry) => at(`dist/inspector/${entry}.js.map`));
  const notices = thirdPartyNotices(maps, [at('node_modules/elkjs')]);
  writeFileSync(
    join(directory, 'THIRD-PARTY-NOTICES.md'),
    `${notices}\nThe source of elkjs is at https://github.com/kieler/elkjs. Notices of the other libraries in the page: page/licenses.txt.\n`,
  );
  writeFileSync(join(directory, 'package.json'), `${JSON.stringify(manifest(), null, 2)}\n`);
}
