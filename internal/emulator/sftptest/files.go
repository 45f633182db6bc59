// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package sftptest

import (
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/pkg/sftp"
)

// files answers the calls of SFTP from the server's folder.
type files struct{ s *Server }

// local is a path as the folder has it.
func local(name string) string {
	name = strings.TrimPrefix(path.Clean("/"+name), "/")
	if name == "" {
		return "."
	}
	return name
}

// Fileread opens a file for a download.
func (f files) Fileread(request *sftp.Request) (io.ReaderAt, error) {
	if err := f.s.call(request.Method, request.Filepath); err != nil {
		return nil, err
	}
	return f.s.root.Open(local(request.Filepath))
}

// Filewrite opens a file for an upload, in the way that the client asks for.
func (f files) Filewrite(request *sftp.Request) (io.WriterAt, error) {
	if err := f.s.call(request.Method, request.Filepath); err != nil {
		return nil, err
	}
	flags := os.O_WRONLY
	wanted := request.Pflags()
	if wanted.Creat {
		flags |= os.O_CREATE
	}
	if wanted.Trunc {
		flags |= os.O_TRUNC
	}
	if wanted.Excl {
		flags |= os.O_EXCL
	}
	return f.s.root.OpenFile(local(request.Filepath), flags, 0o644)
}

// Filecmd does what neither reads nor writes. A plain rename doesn't replace a
// file, says the protocol.
func (f files) Filecmd(request *sftp.Request) error {
	if err := f.s.call(request.Method, request.Filepath); err != nil {
		return err
	}
	name := local(request.Filepath)
	switch request.Method {
	case "Setstat":
		if request.AttrFlags().Permissions {
			return f.s.root.Chmod(name, request.Attributes().FileMode().Perm())
		}
		return nil
	case "Rename":
		if _, err := f.s.root.Lstat(local(request.Target)); err == nil {
			return fs.ErrExist
		}
		return f.s.root.Rename(name, local(request.Target))
	case "Mkdir":
		return f.s.root.Mkdir(name, 0o755)
	case "Rmdir", "Remove":
		return f.s.root.Remove(name)
	}
	return sftp.ErrSSHFxOpUnsupported
}

// PosixRename renames a file over another: OpenSSH's extension.
func (f files) PosixRename(request *sftp.Request) error {
	if err := f.s.call(request.Method, request.Filepath); err != nil {
		return err
	}
	return f.s.root.Rename(local(request.Filepath), local(request.Target))
}

// Filelist lists a folder, or says what a file is.
func (f files) Filelist(request *sftp.Request) (sftp.ListerAt, error) {
	if err := f.s.call(request.Method, request.Filepath); err != nil {
		return nil, err
	}
	name := local(request.Filepath)
	switch request.Method {
	case "Stat", "Lstat":
		info, err := f.s.root.Stat(name)
		if err != nil {
			return nil, err
		}
		return list{info}, nil
	case "List":
		entries, err := fs.ReadDir(f.s.root.FS(), name)
		if err != nil {
			return nil, err
		}
		var all list
		for _, entry := range entries {
			info, err := entry.Info()
			if err != nil {
				return nil, err
			}
			all = append(all, info)
		}
		return all, nil
	}
	return nil, sftp.ErrSSHFxOpUnsupported
}

type list []fs.FileInfo

// ListAt gives out a part of the list.
func (l list) ListAt(part []fs.FileInfo, offset int64) (int, error) {
	if offset >= int64(len(l)) {
		return 0, io.EOF
	}
	n := copy(part, l[offset:])
	if n < len(part) {
		return n, io.EOF
	}
	return n, nil
}
