import type { Platform } from './platforms.ts';

interface FormulaOptions {
  readonly version: string;
  readonly description: string;
  readonly homepage: string;
  readonly license: string;
  /** Base address of the files of this release. */
  readonly address: string;
  readonly tarballs: readonly { readonly platform: Platform; readonly file: string; readonly sha256: string }[];
}

const quoted = (text: string): string =>
  `"${text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('#{', '\\#{')}"`;

/** Homebrew formula for macOS and Linux. */
export function formula({ version, description, homepage, license, address, tarballs }: FormulaOptions): string {
  const cpu = (os: Platform['os'], arch: Platform['arch'], block: string): string => {
    const found = tarballs.find(({ platform }) => platform.os === os && platform.arch === arch);
    if (!found) return '';
    return `    ${block} do\n      url ${quoted(`${address}/${found.file}`)}\n      sha256 ${quoted(found.sha256)}\n    end\n`;
  };
  const system = (os: Platform['os'], block: string): string => {
    const inner = cpu(os, 'arm64', 'on_arm') + cpu(os, 'x64', 'on_intel');
    return inner === '' ? '' : `  ${block} do\n${inner}  end\n\n`;
  };
  return `class Oratorio < Formula
  desc ${quoted(description.split(':')[0]?.replace(/^An? /, '') ?? '')}
  homepage ${quoted(homepage)}
  version ${quoted(version)}
  license ${quoted(license)}

${system('darwin', 'on_macos')}${system('linux', 'on_linux')}  def install
    libexec.install Dir["*"]
    bin.install_symlink libexec/"bin/oratorio"
    man1.install_symlink libexec/"share/man/man1/oratorio.1"
    bash_completion.install_symlink libexec/"share/bash-completion/completions/oratorio"
    zsh_completion.install_symlink libexec/"share/zsh/site-functions/_oratorio"
    fish_completion.install_symlink libexec/"share/fish/vendor_completions.d/oratorio.fish"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/oratorio version")
  end
end
`;
}
