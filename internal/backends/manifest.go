// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package backends

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
)

// Type is the type of a manifest field.
type Type string

// The field types.
const (
	TypeString     Type = "string"
	TypeBool       Type = "bool"
	TypeInt        Type = "int"         // int64 in [Values]
	TypeStringList Type = "string list" // []any of string in [Values]
	TypeStringSet  Type = "string set"  // as a list, order and repeats without meaning
	TypeObject     Type = "object"      // [Values]
	TypeObjectList Type = "object list" // []any of [Values]
)

// Field declares one configuration field. The schema, validation, documentation
// and, for account fields, the uri come from it.
type Field struct {
	Name        string // snake_case
	Type        Type
	Description string // units, limits, what unset means; markdown
	Required    bool
	// Default is what an unset field means. It is applied below the Terraform line
	// (see [Manifest.WithDefaults]), so that a null in the configuration stays null.
	Default any
	Options []string // the allowed values of a string
	Secret  bool     // a secret reference, never a value
	Fields  []Field  // of an object or object list
	// Check tells what is wrong with a known value, "" when nothing is.
	Check func(value any) string
}

// Manifest declares the fields of three places.
type Manifest struct {
	Account []Field // the account's attribute
	Machine []Field // the cloud's options of an instance
	Volume  []Field // the cloud's options of a volume
}

// WithDefaults returns a copy of v in which every unset field that has a default
// holds it.
func WithDefaults(fields []Field, v Values) Values {
	out := v.Clone()
	if out == nil {
		out = Values{}
	}
	for _, f := range fields {
		cur, set := out[f.Name]
		switch {
		case !set && f.Default != nil:
			out[f.Name] = f.fullDefault()
		case f.Type == TypeObject:
			if o, ok := cur.(Values); ok {
				out[f.Name] = WithDefaults(f.Fields, o)
			}
		case f.Type == TypeObjectList:
			if l, ok := cur.([]any); ok {
				for i := range l {
					if o, ok := l[i].(Values); ok {
						l[i] = WithDefaults(f.Fields, o)
					}
				}
			}
		}
	}
	return out
}

// fullDefault is the field's default; of an object, its fields' defaults too.
func (f Field) fullDefault() any {
	return WithDefaults([]Field{{Name: f.Name, Type: f.Type, Fields: f.Fields}}, Values{f.Name: f.Default})[f.Name]
}

// secretName matches the fields that never hold a value, by their names
// (DESIGN.md §5).
var secretName = regexp.MustCompile(`(?:token|secret|password|key)$`)

// referenceForm is what a secret reference looks like; internal/secrets parses it.
var referenceForm = regexp.MustCompile(`^(?:env|secret|vault)://.`)

// Validate returns every way in which v does not fit the fields, each with its
// path below at. Unknown values pass. Messages never hold a value of a field
// that is or looks secret.
func Validate(fields []Field, v Values, at Path) []*Error {
	var issues []*Error
	for name := range v {
		if !slices.ContainsFunc(fields, func(f Field) bool { return f.Name == name }) {
			issues = append(issues, Errorf(InvalidInput, "There is no field %q here.", name).At(at.Join(name)...).
				WithRemedy("The fields are: %s.", strings.Join(fieldNames(fields), ", ")))
		}
	}
	slices.SortFunc(issues, func(a, b *Error) int { return strings.Compare(a.Path.String(), b.Path.String()) })
	for _, f := range fields {
		issues = append(issues, f.validate(v, at.Join(f.Name))...)
	}
	return issues
}

func (f Field) validate(v Values, at Path) []*Error {
	value, set := v[f.Name]
	switch {
	case IsUnknown(value):
		return nil
	case !set:
		if f.Required {
			return []*Error{Errorf(InvalidInput, "%s is required.", f.Name).At(at...)}
		}
		return nil
	}
	switch f.Type {
	case TypeString:
		s, ok := value.(string)
		if !ok {
			return []*Error{wrongType(f, at)}
		}
		return f.validateString(s, at)
	case TypeBool:
		if _, ok := value.(bool); !ok {
			return []*Error{wrongType(f, at)}
		}
	case TypeInt:
		if _, ok := value.(int64); !ok {
			return []*Error{wrongNumber(f, value, at)}
		}
	case TypeStringList, TypeStringSet:
		l, ok := value.([]any)
		if !ok {
			return []*Error{wrongType(f, at)}
		}
		var issues []*Error
		for i, e := range l {
			if IsUnknown(e) {
				continue
			}
			s, ok := e.(string)
			if !ok {
				issues = append(issues, wrongElement(f, TypeString, at.Join(i)))
				continue
			}
			issues = append(issues, f.validateString(s, at.Join(i))...)
		}
		return issues
	case TypeObject:
		o, ok := value.(Values)
		if !ok {
			return []*Error{wrongType(f, at)}
		}
		return append(Validate(f.Fields, o, at), f.check(value, at)...)
	case TypeObjectList:
		l, ok := value.([]any)
		if !ok {
			return []*Error{wrongType(f, at)}
		}
		var issues []*Error
		for i, e := range l {
			if o, ok := e.(Values); ok {
				issues = append(issues, Validate(f.Fields, o, at.Join(i))...)
			} else if !IsUnknown(e) {
				issues = append(issues, wrongElement(f, TypeObject, at.Join(i)))
			}
		}
		return append(issues, f.check(value, at)...)
	}
	return f.check(value, at)
}

func (f Field) validateString(s string, at Path) []*Error {
	if f.Secret || secretName.MatchString(f.Name) {
		if !referenceForm.MatchString(s) {
			return []*Error{literalSecret(f.Name, at)}
		}
		return nil
	}
	if s == "" {
		return []*Error{Errorf(InvalidInput, "%s is empty.", f.Name).At(at...).
			WithRemedy("Leave it out to get what unset means.")}
	}
	if len(f.Options) > 0 && !slices.Contains(f.Options, s) {
		return []*Error{Errorf(InvalidInput, "%q is not a known %s.", s, f.Name).At(at...).
			WithRemedy("Use one of: %s.", strings.Join(f.Options, ", "))}
	}
	return f.check(s, at)
}

func (f Field) check(value any, at Path) []*Error {
	if f.Check == nil || !known(value) {
		return nil
	}
	if problem := f.Check(value); problem != "" {
		return []*Error{Errorf(InvalidInput, "%s", problem).At(at...)}
	}
	return nil
}

// literalSecret never repeats the value: it may be the secret itself.
func literalSecret(name string, at Path) *Error {
	return Errorf(InvalidInput, "%s must be a secret reference, not a value.", name).At(at...).
		WithRemedy("Write env://NAME, secret://tenant/name or vault://mount/path#field, and keep the value out of the configuration. " +
			"If a real credential was written here, replace it with a new one: it may be in version control.")
}

// words are the types as a message says them.
var words = map[Type]string{
	TypeString: "a string", TypeBool: "true or false", TypeInt: "a whole number", TypeStringList: "a list of strings",
	TypeStringSet: "a set of strings", TypeObject: "an object", TypeObjectList: "a list of objects",
}

func wrongType(f Field, at Path) *Error {
	return Errorf(InvalidInput, "%s must be %s.", f.Name, words[f.Type]).At(at...)
}

// wrongNumber is the error of a whole number's field that holds something else, or
// one that is whole and that no int64 holds.
func wrongNumber(f Field, value any, at Path) *Error {
	if n, ok := value.(float64); ok && n == math.Trunc(n) {
		return Errorf(InvalidInput, "%s must be from %d to %d.", f.Name, int64(math.MinInt64), int64(math.MaxInt64)).At(at...)
	}
	return wrongType(f, at)
}

func wrongElement(f Field, element Type, at Path) *Error {
	return Errorf(InvalidInput, "Every element of %s must be %s.", f.Name, words[element]).At(at...)
}

func fieldNames(fields []Field) []string {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.Name
	}
	slices.Sort(names)
	return names
}

var snakeCase = regexp.MustCompile(`^[a-z][a-z0-9]*(?:_[a-z0-9]+)*$`)

// checkFields finds mistakes of a manifest's author: they are reported when the
// definition is registered, not when a user meets them.
func checkFields(fields []Field, at string) error {
	seen := map[string]bool{}
	for _, f := range fields {
		path := at + "." + f.Name
		switch {
		case !snakeCase.MatchString(f.Name):
			return definitionError(path, "a field name is snake_case")
		case seen[f.Name]:
			return definitionError(path, "the field is declared twice")
		case f.Description == "":
			return definitionError(path, "the field has no description")
		case f.Required && f.Default != nil:
			return definitionError(path, "a required field has no default")
		case f.Secret && f.Type != TypeString:
			return definitionError(path, "a secret is a string")
		case len(f.Options) > 0 && f.Type != TypeString && f.Type != TypeStringList && f.Type != TypeStringSet:
			return definitionError(path, "only strings have options")
		}
		seen[f.Name] = true
		switch f.Type {
		case TypeString, TypeBool, TypeInt, TypeStringList, TypeStringSet:
			if len(f.Fields) > 0 {
				return definitionError(path, "only objects have fields")
			}
		case TypeObject, TypeObjectList:
			if len(f.Fields) == 0 {
				return definitionError(path, "an object has fields")
			}
			if err := checkFields(f.Fields, path); err != nil {
				return err
			}
		default:
			return definitionError(path, fmt.Sprintf("unknown type %q", f.Type))
		}
		if f.Default != nil {
			if issues := f.validate(Values{f.Name: f.Default}, Path{f.Name}); len(issues) > 0 {
				return definitionError(path, "the default does not fit: "+issues[0].Message)
			}
		}
	}
	return nil
}

// checkURIFields finds account fields that a uri can't hold: a list of objects has
// no spelling there, and the keys of an object called pool would be the pool's own
// (pool.adopt, pool.limits.instances).
func checkURIFields(fields []Field, at string) error {
	for _, f := range fields {
		if f.Type == TypeObject && f.Name == "pool" {
			return definitionError(at+"."+f.Name, "an object of an account is not called pool, whose keys in a uri are a pool's")
		}
	}
	return checkNoObjectLists(fields, at)
}

func checkNoObjectLists(fields []Field, at string) error {
	for _, f := range fields {
		path := at + "." + f.Name
		if f.Type == TypeObjectList {
			return definitionError(path, "a uri can't hold a list of objects")
		}
		if err := checkNoObjectLists(f.Fields, path); err != nil {
			return err
		}
	}
	return nil
}
