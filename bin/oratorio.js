#!/usr/bin/env node
/**
 * The installed command. Plain JavaScript for any Node >= 18: on Node 22 it runs the command line tool right here, otherwise under
 * the Node 22 binary that came with the package. CommonJS (`package.json` beside it), which Node starts faster.
 */
const { existsSync } = require('node:fs');
const { dirname, join } = require('node:path');

const main = join(__dirname, '..', 'dist', 'cli', 'main.cjs');

/** Feature that Node 22 marks as experimental, which users need not read: locks need node:sqlite. */
const known = /^SQLite is an experimental feature/;

function silenceKnownWarnings() {
  const emitWarning = process.emitWarning;
  process.emitWarning = (warning, ...rest) => {
    if (!known.test(String(warning))) emitWarning.call(process, warning, ...rest);
  };
}

/** Path of the Node 22 binary that npm installed for this platform, or undefined. */
function bundledNode() {
  const platform = `${process.platform}-${process.arch}`;
  for (const name of [`node-${platform}`, `node-bin-${platform}`]) {
    try {
      const directory = dirname(require.resolve(`${name}/package.json`));
      const binary = join(directory, 'bin', process.platform === 'win32' ? 'node.exe' : 'node');
      if (existsSync(binary)) return binary;
    } catch {
      // Not installed for this platform: try the next name.
    }
  }
  return undefined;
}

/** Runs the tool in a child that is, to its caller, this very process: same streams, signals and end. */
function runUnder(node) {
  const { spawn } = require('node:child_process');
  const { constants } = require('node:os');
  const args = ['--disable-warning=ExperimentalWarning', main, ...process.argv.slice(2)];
  const env = { ...process.env, ORATORIO_LAUNCHER_PID: String(process.pid) };
  const child = spawn(node, args, { stdio: 'inherit', env });
  // A terminal sends Ctrl-C to both of us; the tool takes two signals in one moment for one.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
  child.on('error', (error) => {
    console.error(`✖ ${node} cannot be run: ${error.message}`);
    process.exit(1);
  });
  child.on('exit', (code, signal) => process.exit(signal ? 128 + constants.signals[signal] : code));
}

if (process.platform === 'win32') {
  console.error(
    '✖ Oratorio does not run directly on Windows.\n  Install WSL2 (wsl --install), then install Oratorio in its Linux: docs/install.md',
  );
  process.exitCode = 7;
} else if (!existsSync(main)) {
  console.error('✖ This checkout of Oratorio has not been built.\n  Run: npm run build');
  process.exitCode = 1;
} else if (process.versions.node.startsWith('22.')) {
  silenceKnownWarnings();
  require(main);
} else {
  const node = bundledNode();
  if (node) runUnder(node);
  else {
    console.error(
      `✖ Oratorio runs on Node 22; this is Node ${process.versions.node}, and no Node 22 was installed with the package for ` +
        `${process.platform}-${process.arch}.\n  Reinstall without --no-optional, or install Node 22 and run this again with it.`,
    );
    process.exitCode = 1;
  }
}
